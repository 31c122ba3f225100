extension StallReport {
    /// 16 MiB: a report with twenty different stacks of 512 frames each takes about 6 MiB.
    package static let maximumBytes = 16 << 20

    /// The exclusive bound of every duration, in its unit (30,000 years): as whole microseconds it fits into `Int64`.
    package static let maximumMilliseconds = 1e15

    /// The largest count: the largest whole number that every reader of JSON keeps, 2^53 - 1 (RFC 8259, section 6).
    package static let maximumCount = (1 << 53) - 1

    /// The first value that code which holds a report cannot use, with its place; `nil` if there is none.
    ///
    /// The code relies on no more than this: indices are in range, durations and counts can be added up, and the id can be
    /// part of a file's name. `Schemas/stall-report.schema.json` says the rest.
    package var fault: String? {
        if schemaVersion < 1 { return "schemaVersion is \(schemaVersion), but the first version is 1" }
        if !ReportIdentifier.isIdentifier(id) { return "id is \"\(id)\", but an id is a UUID in lowercase" }
        return faultOfNumbers ?? faultOfIndices
    }

    private var faultOfNumbers: String? {
        let suppressed = monitor.suppressed.firstNegative
        let values: [CheckedValue] = [
            ("durationMilliseconds", .duration(durationMilliseconds)),
            ("thresholdMilliseconds", .duration(thresholdMilliseconds)),
            ("startUncertaintyMilliseconds", .duration(startUncertaintyMilliseconds)),
            ("repeats", .count(repeats)),
            ("repeated.totalMilliseconds", .duration(repeated?.totalMilliseconds)),
            ("repeated.leastMilliseconds", .duration(repeated?.leastMilliseconds)),
            ("repeated.greatestMilliseconds", .duration(repeated?.greatestMilliseconds)),
            ("loop.nesting", .count(loop.nesting)),
            ("omittedThreads", .count(omittedThreads)),
            ("victims.totalWaitMilliseconds", .duration(victims?.totalWaitMilliseconds)),
            ("pool.pinnedThreads", .count(pool?.pinnedThreads)),
            ("pool.width", .count(pool?.width)),
            ("pool.waitingTasks", .count(pool?.waitingTasks)),
            ("history.windowMilliseconds", .duration(history?.windowMilliseconds)),
            ("history.omittedLoops", .count(history?.omittedLoops)),
            ("monitor.watchdogLateMilliseconds", .duration(monitor.watchdogLateMilliseconds)),
            ("monitor.suppressed.\(suppressed?.reason ?? "")", .count(suppressed?.count)),
        ]
        if let fault = firstFault(values) { return fault }
        let sampled = firstFault(in: samples, "samples") { sample in
            [
                ("timesSeen", .count(sample.timesSeen)),
                ("atMilliseconds", .duration(sample.atMilliseconds)),
                ("weightMilliseconds", .duration(sample.weightMilliseconds)),
                ("heldMicroseconds", .duration(sample.heldMicroseconds)),
                ("captureMicroseconds", .duration(sample.captureMicroseconds)),
            ]
        }
        if let sampled { return sampled }
        for (index, loop) in (history?.loops ?? []).enumerated() {
            let fault = firstFault(in: loop.turns, "history.loops[\(index)].turns") { turn in
                [
                    // A turn may begin before the stall.
                    ("atMilliseconds", .duration(abs(turn.atMilliseconds))),
                    ("durationMilliseconds", .duration(turn.durationMilliseconds)),
                    ("waitedMilliseconds", .duration(turn.waitedMilliseconds)),
                ]
            }
            if let fault { return fault }
        }
        return firstFault(in: otherThreads, "otherThreads") { [("heldMicroseconds", .duration($0.heldMicroseconds))] }
    }

    private var faultOfIndices: String? {
        let count = stacks.count
        func fault<Element>(
            _ elements: [Element]?, _ list: @autoclosure () -> String, _ stack: (Element) -> Int?
        ) -> String? {
            firstFault(in: elements, list()) { [("stack", .index(stack($0), of: "stack", count))] }
        }
        let images = images.count
        if let fault = firstFault(in: frames, "frames", { [("image", .index($0.image, of: "image", images))] }) {
            return fault
        }
        if let fault = fault(samples, "samples", \.stack) { return fault }
        for (index, sample) in samples.enumerated() {
            if let fault = fault(sample.workers, "samples[\(index)].workers", \.stack) { return fault }
        }
        if let fault = fault(otherThreads, "otherThreads", \.stack) { return fault }
        for (index, other) in (otherThreads ?? []).enumerated() {
            if let fault = fault(other.lock?.owners, "otherThreads[\(index)].lock.owners", \.stack) { return fault }
        }
        if let fault = fault(waits, "waits", \.stack) { return fault }
        for (index, wait) in (waits ?? []).enumerated() {
            if let fault = fault(wait.childStacks, "waits[\(index)].childStacks", { $0 }) { return fault }
        }
        if let fault = tasks?.fault(stacks: count) { return "tasks: \(fault)" }
        if let fault = fault(cause?.lock?.owners, "cause.lock.owners", \.stack) { return fault }
        for (index, stack) in stacks.enumerated() {
            guard let place = stack.firstIndex(where: { !frames.indices.contains($0) }) else { continue }
            return firstFault([("stacks[\(index)][\(place)]", .index(stack[place], of: "frame", frames.count))])
        }
        return nil
    }
}

private typealias CheckedValue = (place: String, rule: ValueRule)

private enum ValueRule {
    case duration(Double?)
    case count(Int?)
    case index(Int?, of: String, Int)

    /// What is wrong with the value, as words after its place; `nil` if it is right or missing.
    var fault: String? {
        switch self {
        case .duration(let value?) where !(value >= 0 && value < StallReport.maximumMilliseconds):
            "is \(value), but a duration is at least 0 and less than 1e15"
        case .count(let value?) where value < 0: "is \(value), but a count cannot be negative"
        case .count(let value?) where value > StallReport.maximumCount:
            "is \(value), but a count is at most \(StallReport.maximumCount)"
        case .index(let index?, let element, let count) where !(0..<count).contains(index):
            "is \(index), but there \(count == 1 ? "is 1 \(element)" : "are \(count) \(element)s")"
        default: nil
        }
    }
}

private func firstFault(_ values: [CheckedValue]) -> String? {
    values.lazy.compactMap { value in value.rule.fault.map { "\(value.place) \($0)" } }.first
}

/// Returns the first fault of a list's elements, whose places begin with `list`.
private func firstFault<Element>(
    in elements: [Element]?, _ list: @autoclosure () -> String, _ values: (Element) -> [CheckedValue]
) -> String? {
    for (index, element) in (elements ?? []).enumerated() {
        if let fault = firstFault(values(element)) { return "\(list())[\(index)].\(fault)" }
    }
    return nil
}
