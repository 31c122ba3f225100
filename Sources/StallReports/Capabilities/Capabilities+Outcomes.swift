extension Capabilities {
    /// The result of one attempt.
    package enum Outcome: Sendable, Equatable {
        case works(String? = nil)
        case missing(String? = nil)
        case notTried(String)
    }

    /// Turns the results of attempts into features with their losses and remedies.
    ///
    /// A pure function: the result depends on the arguments only.
    ///
    /// - Parameters:
    ///   - environment: The system's rules for the process.
    ///   - outcomes: The results. A feature without one was not tried.
    package init(_ environment: Environment, _ outcomes: [FeatureName: Outcome]) {
        let remedies = CapabilityRemedies(environment)
        var missing: Set<FeatureName> = []
        for (name, outcome) in outcomes {
            if case .missing = outcome { missing.insert(name) }
        }
        self.init(
            environment: environment,
            features: FeatureName.known.map { name in
                var feature = Feature(name: name, state: .notTried, remedies: [], isOptional: name.isOptional)
                switch outcomes[name] {
                case .works(let detail):
                    feature.state = .works
                    feature.detail = detail
                case .missing(let detail):
                    feature.state = .missing
                    feature.detail = detail
                    feature.loss = name.loss(missing: missing)
                    feature.remedies = remedies.remedies(for: name, missing: missing)
                case .notTried(let reason): feature.detail = reason
                case nil: feature.detail = "not tried"
                }
                return feature
            }
        )
    }
}
