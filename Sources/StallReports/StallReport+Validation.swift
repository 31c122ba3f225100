extension StallReport {
    /// The largest report that is read, in bytes of JSON: 16 MiB.
    ///
    /// A report with twenty different stacks of 512 frames each takes about 6.
    public static let maximumBytes = 16 << 20

    /// What is wrong with a report that a decoder has accepted; `nil` when nothing is.
    ///
    /// Every index has to lead somewhere and every duration has to be one, so that whoever has a report can use it
    /// without checking again.
    package var fault: String? {
        guard schemaVersion >= 1 else { return "schemaVersion is \(schemaVersion)" }
        let times = [
            durationMilliseconds, thresholdMilliseconds, startUncertaintyMilliseconds ?? 0,
            monitor.watchdogLateMilliseconds,
        ]
        guard times.allSatisfy(\.isDuration) else { return "a duration is negative or too large" }
        guard repeats >= 0, loop.nesting >= 0, omittedThreads ?? 0 >= 0, monitor.suppressed.isValid else {
            return "a count is negative"
        }
        for (index, sample) in samples.enumerated() {
            guard sample.stack.map(stacks.indices.contains) ?? true else {
                return "samples[\(index)].stack leads nowhere"
            }
            guard [sample.atMilliseconds, sample.heldMicroseconds, sample.captureMicroseconds].allSatisfy(\.isDuration)
            else { return "samples[\(index)] has a time that is negative or too large" }
            guard (sample.workers ?? []).allSatisfy({ $0.stack.map(stacks.indices.contains) ?? true }) else {
                return "samples[\(index)].workers has a stack that leads nowhere"
            }
        }
        for (index, other) in (otherThreads ?? []).enumerated() {
            guard other.stack.map(stacks.indices.contains) ?? true, other.heldMicroseconds.isDuration else {
                return "otherThreads[\(index)] leads nowhere or has a time that is none"
            }
        }
        for (index, owner) in (cause?.lock?.owners ?? []).enumerated() {
            guard owner.stack.map(stacks.indices.contains) ?? true else {
                return "cause.lock.owners[\(index)].stack leads nowhere"
            }
        }
        for (index, stack) in stacks.enumerated() where !stack.allSatisfy(frames.indices.contains) {
            return "stacks[\(index)] has a frame that leads nowhere"
        }
        for (index, frame) in frames.enumerated() where !(frame.image.map(images.indices.contains) ?? true) {
            return "frames[\(index)].image leads nowhere"
        }
        return nil
    }
}

extension StallReport {
    /// What a duration has to be less than, in milliseconds: 30,000 years.
    ///
    /// As much as can be made a whole number of microseconds without a second thought.
    package static let maximumMilliseconds = 1e15
}

extension Double {
    fileprivate var isDuration: Bool { self >= 0 && self < StallReport.maximumMilliseconds }
}
