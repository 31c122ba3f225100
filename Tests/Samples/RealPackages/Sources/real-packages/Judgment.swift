import StallWatch

/// What a report says against what it should say.
struct Judgment {
    /// What is wrong; empty for a right report.
    private(set) var mistakes: [String] = []

    init(_ report: StallReport, of stall: LabeledStall) {
        if let culprit = report.culprit {
            let name = stall.culprits.first { Self.isFunction(culprit.function, named: $0) }
            if let name {
                checkPlace(culprit, of: name, in: stall.file)
            } else {
                mistakes.append(
                    "culprit \(stall.culprits.joined(separator: " or ")), got \(culprit.function) "
                        + "(\(Self.place(culprit)))"
                )
            }
        } else {
            mistakes.append("culprit \(stall.culprits[0]), got none")
        }
        let kind = report.cause?.kind
        if kind.map(stall.causes.contains) != true {
            let expected = stall.causes.map(\.rawValue).sorted().joined(separator: " or ")
            mistakes.append("cause \(expected), got \(kind?.rawValue ?? "none")")
        }
        if stall.lock != nil, report.cause?.lock?.kind != stall.lock {
            mistakes.append(
                "lock \(stall.lock?.rawValue ?? "none"), got \(report.cause?.lock?.kind.rawValue ?? "none"): "
                    + (report.cause?.summary ?? "")
            )
        }
    }

    private mutating func checkPlace(_ culprit: StallReport.Culprit, of name: String, in file: String) {
        guard let lines = SourceFunction.lines(of: name, in: file) else {
            mistakes.append("\(name) is not in \(file)")
            return
        }
        if culprit.file != file || culprit.line.map(lines.contains) != true {
            mistakes.append(
                "\(name) at \(Self.base(file)):\(lines.lowerBound)-\(lines.upperBound), got \(Self.place(culprit))"
            )
        }
    }

    /// Whether `function`, as reports write it, is `name` or a closure in it.
    private static func isFunction(_ function: String, named name: String) -> Bool {
        guard !function.hasPrefix("merged ") else { return false }
        return function.split(separator: " ").contains { word in
            guard word.hasPrefix(name) || word.contains("." + name) else { return false }
            guard let range = word.range(of: name) else { return false }
            return word[range.upperBound...].first.map { "(<.".contains($0) } ?? true
        }
    }

    private static func place(_ culprit: StallReport.Culprit) -> String {
        guard let file = culprit.file else { return "no line" }
        return "\(base(file)):\(culprit.line ?? 0)"
    }

    private static func base(_ path: String) -> Substring { path.split(separator: "/").last ?? "" }
}
