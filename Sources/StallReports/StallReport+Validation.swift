extension StallReport {
    /// The size limit of a report's JSON: 16 MiB.
    ///
    /// A report with twenty different stacks of 512 frames each takes about 6 MiB.
    public static let maximumBytes = 16 << 20

    /// The first fault of a decoded report, with its place and value; `nil` if there is none.
    ///
    /// Covers every index, count and duration, so that code which holds a report can use them unchecked.
    package var fault: String? {
        guard schemaVersion >= 1 else { return "schemaVersion is \(schemaVersion), but the first version is 1" }
        return durationFault ?? countFault ?? indexFault
    }

    private var durationFault: String? {
        let durations: [(place: String, value: Double)] = [
            ("durationMilliseconds", durationMilliseconds),
            ("thresholdMilliseconds", thresholdMilliseconds),
            ("startUncertaintyMilliseconds", startUncertaintyMilliseconds ?? 0),
            ("monitor.watchdogLateMilliseconds", monitor.watchdogLateMilliseconds),
        ]
        for (place, value) in durations where !value.isDuration { return Self.notADuration(value, at: place) }
        for (index, sample) in samples.enumerated() {
            let durations: [(name: String, value: Double)] = [
                ("atMilliseconds", sample.atMilliseconds),
                ("weightMilliseconds", sample.weightMilliseconds ?? 0),
                ("heldMicroseconds", sample.heldMicroseconds),
                ("captureMicroseconds", sample.captureMicroseconds),
            ]
            for (name, value) in durations where !value.isDuration {
                return Self.notADuration(value, at: "samples[\(index)].\(name)")
            }
        }
        for (index, other) in (otherThreads ?? []).enumerated() where !other.heldMicroseconds.isDuration {
            return Self.notADuration(other.heldMicroseconds, at: "otherThreads[\(index)].heldMicroseconds")
        }
        return historyFault ?? repeatedFault
    }

    private var repeatedFault: String? {
        guard let repeated else { return nil }
        let (total, least, greatest) = (
            repeated.totalMilliseconds, repeated.leastMilliseconds, repeated.greatestMilliseconds
        )
        for (name, value) in [("total", total), ("least", least), ("greatest", greatest)] where !value.isDuration {
            return Self.notADuration(value, at: "repeated.\(name)Milliseconds")
        }
        guard repeats > 0 else { return "repeated has durations, but repeats is \(repeats)" }
        // The parts are rounded to whole microseconds.
        let count = Double(repeats)
        guard least <= greatest, total >= least * count - count, total <= greatest * count + count else {
            return "repeated.totalMilliseconds is \(total), but \(repeats) stalls lasted \(least) to \(greatest) ms"
        }
        return nil
    }

    private var historyFault: String? {
        guard let history else { return nil }
        guard history.windowMilliseconds.isDuration else {
            return Self.notADuration(history.windowMilliseconds, at: "history.windowMilliseconds")
        }
        for (loop, turns) in history.loops.map(\.turns).enumerated() {
            for (index, turn) in turns.enumerated() {
                let place = "history.loops[\(loop)].turns[\(index)]"
                // A turn may begin before the stall.
                if !abs(turn.atMilliseconds).isDuration {
                    return Self.notADuration(turn.atMilliseconds, at: "\(place).atMilliseconds")
                }
                if !turn.durationMilliseconds.isDuration {
                    return Self.notADuration(turn.durationMilliseconds, at: "\(place).durationMilliseconds")
                }
                if !turn.waitedMilliseconds.isDuration {
                    return Self.notADuration(turn.waitedMilliseconds, at: "\(place).waitedMilliseconds")
                }
            }
        }
        return nil
    }

    private var countFault: String? {
        var counts: [(place: String, value: Int)] = [
            ("repeats", repeats), ("loop.nesting", loop.nesting), ("omittedThreads", omittedThreads ?? 0),
            ("history.omittedLoops", history?.omittedLoops ?? 0),
            ("context.omittedAttributes", context?.omittedAttributes ?? 0),
        ]
        for (index, sample) in samples.enumerated() {
            counts.append(("samples[\(index)].timesSeen", sample.timesSeen ?? 1))
        }
        if let (reason, count) = monitor.suppressed.firstNegative {
            counts.append(("monitor.suppressed.\(reason)", count))
        }
        for (place, value) in counts where value < 0 { return "\(place) is \(value), but a count cannot be negative" }
        return nil
    }

    private var indexFault: String? {
        for (index, sample) in samples.enumerated() {
            if let fault = stackFault(sample.stack, at: "samples[\(index)].stack") { return fault }
            for (group, workers) in (sample.workers ?? []).enumerated() {
                if let fault = stackFault(workers.stack, at: "samples[\(index)].workers[\(group)].stack") {
                    return fault
                }
            }
        }
        for (index, other) in (otherThreads ?? []).enumerated() {
            if let fault = stackFault(other.stack, at: "otherThreads[\(index)].stack") { return fault }
            for (number, owner) in (other.lock?.owners ?? []).enumerated() {
                let place = "otherThreads[\(index)].lock.owners[\(number)].stack"
                if let fault = stackFault(owner.stack, at: place) { return fault }
            }
        }
        for (index, owner) in (cause?.lock?.owners ?? []).enumerated() {
            if let fault = stackFault(owner.stack, at: "cause.lock.owners[\(index)].stack") { return fault }
        }
        for (index, stack) in stacks.enumerated() {
            for (position, frame) in stack.enumerated() where !frames.indices.contains(frame) {
                return Self.outOfRange(frame, at: "stacks[\(index)][\(position)]", of: "frame", count: frames.count)
            }
        }
        for (index, frame) in frames.enumerated() {
            if let image = frame.image, !images.indices.contains(image) {
                return Self.outOfRange(image, at: "frames[\(index)].image", of: "image", count: images.count)
            }
        }
        return nil
    }

    /// The fault of an index into ``stacks``; `nil` if the index is valid or absent.
    private func stackFault(_ stack: Int?, at place: @autoclosure () -> String) -> String? {
        guard let stack, !stacks.indices.contains(stack) else { return nil }
        return Self.outOfRange(stack, at: place(), of: "stack", count: stacks.count)
    }

    private static func outOfRange(_ index: Int, at place: String, of element: String, count: Int) -> String {
        let elements = count == 1 ? "there is 1 \(element)" : "there are \(count) \(element)s"
        return "\(place) is \(index), but \(elements)"
    }

    private static func notADuration(_ value: Double, at place: String) -> String {
        "\(place) is \(value), but a duration is at least 0 and less than 1e15"
    }
}

extension StallReport {
    /// The exclusive upper bound of every duration in a report: 1e15, in the duration's own unit.
    ///
    /// In milliseconds that is 30,000 years. It converts to whole microseconds without an overflow of `Int64`.
    package static let maximumMilliseconds = 1e15
}

extension Double {
    fileprivate var isDuration: Bool { self >= 0 && self < StallReport.maximumMilliseconds }
}
