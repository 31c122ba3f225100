internal import Foundation

/// The features of StallWatch that work in one process, found by trying them there.
///
/// For a missing feature, ``Feature/loss`` says what reports lack, and ``Feature/remedies`` how to enable it.
public struct Capabilities: Codable, Sendable, Equatable {
    /// The name of a monitor's watchdog thread, by which `stallwatch doctor` finds monitored processes.
    package static let watchdogThread = "stallwatch-dog"

    /// The version of StallWatch that tried the features.
    package var version: String = StallWatchVersion.current
    package var environment: Environment
    /// All features, in a fixed order.
    package var features: [Feature]

    package init(environment: Environment, features: [Feature]) {
        self.environment = environment
        self.features = features
    }

    /// Returns the feature with that name; `nil` if an older version did not know it.
    package subscript(name: FeatureName) -> Feature? { features.first { $0.name == name } }

    /// The missing features.
    public var missing: [Feature] { features.filter { $0.state == .missing } }

    /// Whether a report may lack its stack, its cause, its context, its source lines, or its durability.
    package var isDegraded: Bool { missing.contains { !$0.isOptional } }

    /// As JSON in UTF-8, indented, with sorted keys and a line feed at the end; never empty.
    package func jsonData() -> [UInt8] { encodeJSON(self, isIndented: true) }

    /// Decodes capabilities; `nil` for any other document.
    package init?(jsonData: [UInt8]) {
        guard let decoded = try? JSONDecoder().decode(Capabilities.self, from: Data(jsonData)) else { return nil }
        self = decoded
    }
}

extension Capabilities {
    /// A feature that a system may lack or forbid.
    public struct Feature: Codable, Sendable, Equatable {
        /// The feature's name.
        public var name: FeatureName
        package var state: FeatureState
        /// The reason for the state, such as "Operation not permitted"; `nil` if there is nothing to add.
        public var detail: String?
        /// The data that reports lack without the feature; `nil` unless it is missing.
        public var loss: String?
        /// The settings, packages or versions that enable the feature; empty unless it is missing.
        ///
        /// They are alternatives for different runtimes. If several rules forbid a feature, all of them must be lifted.
        public var remedies: [String]
        /// Whether reports are complete without the feature, which only adds details.
        public var isOptional: Bool
    }

    /// The name of a feature.
    public typealias FeatureName = Word<Feature>

    /// The system's rules for a process.
    package struct Environment: Codable, Sendable, Equatable {
        package var pid: Int32
        package var userID: UInt32?
        package var kernel: String = ""
        package var architecture: String = ""
        /// The seccomp mode: 0 for none, 1 for strict, 2 for a filter of system calls; `nil` if unknown.
        package var seccompMode: Int?
        /// Whether the process can never gain privileges (prctl(2), PR_SET_NO_NEW_PRIVS); `nil` if unknown.
        package var hasNoNewPrivileges: Bool?
        /// The scope of Yama, 0 to 3; `nil` if the kernel has no Yama or does not show it.
        package var yamaScope: Int?
        /// The AppArmor profile with its mode, or the label of another security module; `nil` if there is none.
        package var securityLabel: String?
        /// Whether the process is dumpable (prctl(2), PR_GET_DUMPABLE); `nil` if unknown.
        package var isDumpable: Bool?
        package var maySysPtrace: Bool?
        /// The value of the sysctl kernel.perf_event_paranoid; `nil` if the kernel has no perf events.
        package var perfEventParanoid: Int?
        /// The process that traces this one, such as a debugger; `nil` if there is none.
        package var tracer: Int32?
        /// Whether /proc belongs to another PID namespace, so that it does not show the process's threads under their ids;
        /// `nil` if it does not.
        package var isProcForeign: Bool?
    }

    package enum Outcome: Sendable, Equatable {
        case works(String? = nil)
        case missing(String? = nil)
        case notTried(String)
    }

    /// Turns the results of attempts into features with their losses and remedies; one without a result was not tried.
    package init(_ environment: Environment, _ outcomes: [FeatureName: Outcome]) {
        let missing = Set(outcomes.filter { if case .missing = $0.value { true } else { false } }.keys)
        let remedies = CapabilityRemedies(environment: environment, missing: missing)
        self.init(
            environment: environment,
            features: CapabilityRow.all.map { row in
                var feature = Feature(name: row.name, state: .notTried, remedies: [], isOptional: row.isOptional)
                switch outcomes[row.name] {
                case .works(let detail):
                    feature.state = .works
                    feature.detail = detail
                case .missing(let detail):
                    feature.state = .missing
                    feature.detail = detail
                    feature.loss = row.loss(missing)
                    feature.remedies = row.remedies(remedies)
                case .notTried(let reason): feature.detail = reason
                case nil: feature.detail = "not tried"
                }
                return feature
            }
        )
    }
}

package typealias FeatureState = Word<Capabilities>

extension FeatureState {
    package static var works: Self { Self(rawValue: "works") }
    package static var missing: Self { Self(rawValue: "missing") }
    /// The feature was not tried, for the reason in ``Capabilities/Feature/detail``.
    package static var notTried: Self { Self(rawValue: "notTried") }
}
