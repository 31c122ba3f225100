import Testing

/// The stalls that a test may have: the durations from which a stall is a warning, and from which it fails the test.
struct StallBudget: Sendable, Equatable {
    /// The duration from which a stall is a warning, in milliseconds; `nil` for no warnings.
    var warn: Double?
    /// The duration from which a stall fails the test, in milliseconds.
    var fail: Double

    init(warn: Duration? = nil, fail: Duration) {
        self.warn = warn.map { $0 / .milliseconds(1) }
        self.fail = fail / .milliseconds(1)
    }

    /// The shortest stall that matters, in milliseconds.
    var shortest: Double { min(warn ?? fail, fail) }

    /// Returns how severe a stall is, `nil` if the budget allows it.
    ///
    /// A stall fails the test only if it is certain that it is long enough.
    func severity(of time: CodeTime) -> Issue.Severity? {
        if time.least >= fail { return .error }
        guard let warn else { return nil }
        return time.most >= warn ? .warning : nil
    }

    /// Returns how severe a stall is if it belongs to one of several tests, and it is not known to which.
    ///
    /// It is an error if it is one for each of the tests, and a warning if at least one of them does not allow it.
    static func severity(of time: CodeTime, inOneOf budgets: [StallBudget]) -> Issue.Severity? {
        let severities = budgets.map { $0.severity(of: time) }
        if !severities.isEmpty, severities.allSatisfy({ $0 == .error }) { return .error }
        return severities.contains { $0 != nil } ? .warning : nil
    }
}
