import StallReports

/// A stall as plain text: what stalled, why, who holds the lock, and the stacks.
///
/// `stallwatch show` shows more of the same report.
struct StallText {
    /// The most samples whose stacks are shown.
    private static let maximumSamples = 3

    private let report: StallReport

    init(_ report: StallReport) {
        self.report = report
    }

    /// The text, with a line feed at the end.
    var text: String {
        var lines = [report.summary]
        if let cause = report.cause {
            lines.append("\(cause.kind.rawValue) (\(cause.confidence.rawValue)): \(cause.summary)")
            lines.append(
                "on CPU \(whole(cause.onCPUMilliseconds)) ms, waiting for a CPU \(whole(cause.runQueueMilliseconds)) ms, "
                    + "blocked \(whole(cause.blockedMilliseconds)) ms")
        }
        if let fingerprint = report.fingerprint { lines.append("fingerprint \(fingerprint)") }
        for owner in report.cause?.lock?.owners ?? [] {
            lines += ["", "Lock owner: thread \(owner.thread.id)\(owner.thread.name.map { " \"\($0)\"" } ?? "")"]
            if let stack = owner.stack { lines += frames(of: stack) }
        }
        var shown: Set<Int> = []
        // The samples with the most time, in the order of their times.
        let shares = report.sampleShares
        let main = Set(report.samples.indices.sorted { shares[$0] > shares[$1] }.prefix(Self.maximumSamples))
        for (index, sample) in report.samples.enumerated() where main.contains(index) {
            if let stack = sample.stack, shown.insert(stack).inserted {
                lines += ["", "Stack at \(whole(sample.atMilliseconds)) ms"] + frames(of: stack)
            }
            for group in sample.workers ?? [] {
                guard let stack = group.stack, shown.insert(stack).inserted else { continue }
                lines += ["", "Workers: \(group.threads.count)"] + frames(of: stack)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A stack's frames, innermost first; those of the app are marked, runtime frames are left out.
    ///
    /// What Swift Testing does to run a test is left out, and so is what its macros expand to.
    private func frames(of stack: Int) -> [String] {
        let frames = report.stacks[stack].prefix { !report.frames[$0].runsTest }
        return frames.enumerated().compactMap { number, index in
            let frame = report.frames[index]
            guard frame.isRuntimeFrame != true, frame.compilerGenerated != .macro else { return nil }
            let image = frame.image.map { report.images[$0].name }
            let name = frame.function ?? "\(image ?? "?")+\(frame.offset)"
            var line = "\(frame.isInApp ? ">" : " ") \(number) \(name)"
            if let file = frame.file {
                line += "  \(file)\(frame.line.map { ":\($0)" } ?? "")"
            } else if let image {
                line += "  \(image)"
            }
            if frame.kind == .asyncCaller { line += "  (async caller)" }
            return line
        }
    }

    private func whole(_ milliseconds: Double) -> Int { Int(milliseconds.rounded()) }
}
