import StallReports

/// A stall, or a group of stalls, as CI systems show it.
struct Finding: Equatable {
    enum Severity: String, CaseIterable {
        case error, warning
        /// Nothing that a developer has to look at.
        case passed
    }

    var severity: Severity
    /// The loop.
    var loop: String
    /// What stalled, in a few words.
    var title: String
    /// The sentence.
    var message: String
    var cause: String
    /// The source file as the report has it; `nil` if no function is to blame, or its file is not known.
    var file: String?
    var line: Int?
    var milliseconds: Double
}

extension Finding {
    init(_ report: StallReport) {
        let duration = report.durationMilliseconds.duration
        self.init(
            severity: .warning, loop: report.loop.label,
            title: report.culprit.map { "\(duration) in \($0.function)" } ?? "\(duration) on \(report.loop.label)",
            message: report.summary + "." + (report.cause.map { " \($0.summary)" } ?? ""),
            cause: (report.cause?.kind ?? .unknown).rawValue, file: report.culprit?.file, line: report.culprit?.line,
            milliseconds: report.durationMilliseconds
        )
    }

    init(_ group: StallGroup) {
        let total = group.totalMilliseconds.duration
        let stalls = counted(group.count, "stall", "stalls")
        let place = group.culprit.map { " in \($0.function)" } ?? ""
        self.init(
            severity: .warning, loop: group.loop, title: "\(total)\(place)",
            message:
                "\(stalls) of \(group.loop)\(place): \(total) in all, \(group.maximumMilliseconds.duration) at most.",
            cause: group.cause, file: group.culprit?.file, line: group.culprit?.line,
            milliseconds: group.totalMilliseconds
        )
    }

    /// - Parameters:
    ///   - change: The change of a group.
    ///   - failing: The kinds of change that make the command fail.
    init(_ change: GroupChange, failing: [GroupChange.Kind]) {
        self.init(change.group)
        let sides = [("before", change.base), ("now", change.new)].map { name, side in
            "\(name) \(counted(side.count, "stall", "stalls")), \(side.millisecondsPerHour.duration) an hour"
        }
        title = "\(change.kind.rawValue): \(title)"
        message = sides.joined(separator: "; ") + "."
        switch change.kind {
        case _ where failing.contains(change.kind): severity = .error
        case .new, .worse: severity = .warning
        case .same, .better, .gone: severity = .passed
        }
    }
}
