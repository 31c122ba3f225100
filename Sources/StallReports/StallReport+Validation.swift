internal import Foundation

extension StallReport {
    /// The size limit of a report's JSON: 16 MiB.
    ///
    /// A report with twenty different stacks of 512 frames each takes about 6 MiB.
    public static let maximumBytes = 16 << 20

    /// The exclusive upper bound of every duration in a report: 1e15, in the duration's own unit.
    ///
    /// In milliseconds that is 30,000 years. It converts to whole microseconds without an overflow of `Int64`.
    package static let maximumMilliseconds = 1e15

    /// The first fault of a decoded report for which readers refuse it, with its place and value; `nil` if there is none.
    ///
    /// Covers every index, count and duration, and the id, so that code which holds a report can use them unchecked.
    package var fault: String? {
        var check = ReportCheck(isForReading: true)
        check.check(self)
        return check.faults.first?.refusal
    }

    /// Every fault of a report's JSON: of its shape the first one; else of its values ``ReportCheck/maximumFaults`` at most.
    ///
    /// Unknown fields and unknown words are allowed, because a newer version may have added them. `null` counts as a
    /// missing field.
    package static func faults(in json: [UInt8]) -> [ReportFault] {
        do {
            if let excess = sizeFault(of: json) { return [ReportFault(refusal: excess)] }
            let report = try JSONDecoder().decode(StallReport.self, from: Data(json))
            if let newer = newerVersion(in: json) { return [ReportFault(path: "$", message: newer)] }
            var check = ReportCheck(isForReading: false)
            check.check(report)
            return Array(check.faults.prefix(ReportCheck.maximumFaults))
        } catch {
            // The failure may result from a newer schema, which makes the better message.
            if let newer = newerVersion(in: json) { return [ReportFault(path: "$.schemaVersion", message: newer)] }
            let fault = (error as? DecodingError).map { ReportFault($0, in: json) }
            return [fault ?? ReportFault(path: "$", message: "\(error)")]
        }
    }
}

/// Checks the values of a decoded report.
///
/// Each place has one rule. A reader asks only for the faults for which it refuses a report: most fields are only shown,
/// and a report with an odd one is better than none.
struct ReportCheck {
    /// The most faults that are listed for one report.
    static let maximumFaults = 100
    /// By how much the sum of parts may exceed the whole, in milliseconds: rounding, and clocks read one after another.
    private static let slack = 1.0

    /// Whether only faults for which readers refuse the report are looked for.
    let isForReading: Bool
    private(set) var faults: [ReportFault] = []

    mutating func check(_ report: StallReport) {
        if report.schemaVersion < 1 {
            refuse("schemaVersion is \(report.schemaVersion), but the first version is 1")
        }
        checkIdentifier(report.id)
        checkForm(of: report)
        checkDurations(of: report)
        checkPositive(Int(report.process.pid), at: "process.pid")
        checkPositive(report.culprit?.line, at: "culprit.line")
        require(report.monitor.captureMethods != nil, at: "monitor", "captureMethods is missing")
        checkShare(report.culprit?.share, at: "culprit.share")
        checkDuration(report.activity?.turnsPerSecond, at: "activity.turnsPerSecond")
        checkShare(report.activity?.busyShare, at: "activity.busyShare")
        checkShare(report.activity?.cpuShare, at: "activity.cpuShare")
        if let cause = report.cause { check(cause) }
        check(report.context, at: "context")
        checkSamples(of: report)
        checkParts(of: report)
        checkHistory(of: report)
        checkFrames(of: report)
        checkIndices(of: report)
    }

    // MARK: - Parts of a report

    private mutating func checkIdentifier(_ id: String) {
        if ReportIdentifier.isIdentifier(id, version: 7) { return }
        let refusal = ReportIdentifier.isIdentifier(id) ? nil : "id is \"\(id)\", but an id is a UUID in lowercase"
        add("id", "\"\(id)\" is not a UUID of version 7 in lowercase", refusal)
    }

    private mutating func checkForm(of report: StallReport) {
        if let fingerprint = report.fingerprint {
            require(
                fingerprint.utf8.count == 16 && fingerprint.isHexadecimal, at: "fingerprint",
                "\"\(fingerprint)\" does not have 16 hexadecimal digits")
        }
        checkWord(report.kind.rawValue, at: "kind")
        checkWord(report.state.rawValue, at: "state")
        checkWord(report.callout?.rawValue, at: "callout")
        checkWord(report.loop.kind.rawValue, at: "loop.kind")
        for (index, wait) in (report.waits ?? []).enumerated() {
            checkWord(wait.kind.rawValue, at: "waits[\(index)].kind")
            checkPositive(wait.line, at: "waits[\(index)].line")
            checkPositive(wait.thread.map(Int.init), at: "waits[\(index)].thread")
        }
        for (index, method) in (report.monitor.captureMethods ?? []).enumerated() {
            checkWord(method.rawValue, at: "monitor.captureMethods[\(index)]")
        }
    }

    private mutating func checkDurations(of report: StallReport) {
        checkDuration(report.durationMilliseconds, at: "durationMilliseconds")
        checkDuration(report.thresholdMilliseconds, at: "thresholdMilliseconds")
        checkDuration(report.startUncertaintyMilliseconds, at: "startUncertaintyMilliseconds")
        checkCount(report.repeats, at: "repeats")
        checkRepeated(report.repeated, count: report.repeats)
        checkCount(report.loop.nesting, at: "loop.nesting")
        checkCount(report.omittedThreads, at: "omittedThreads")
        checkDuration(report.history?.windowMilliseconds, at: "history.windowMilliseconds")
        checkCount(report.history?.omittedLoops, at: "history.omittedLoops")
        checkDuration(report.monitor.watchdogLateMilliseconds, at: "monitor.watchdogLateMilliseconds")
        if let (reason, count) = report.monitor.suppressed.firstNegative {
            checkCount(count, at: "monitor.suppressed.\(reason)")
        }
    }

    private mutating func checkRepeated(_ repeated: StallReport.RepeatedStalls?, count: Int) {
        guard let repeated else { return }
        let total = repeated.totalMilliseconds
        checkDuration(total, at: "repeated.totalMilliseconds")
        checkDuration(repeated.leastMilliseconds, at: "repeated.leastMilliseconds")
        checkDuration(repeated.greatestMilliseconds, at: "repeated.greatestMilliseconds")
        // The parts are rounded to whole microseconds.
        let number = Double(count)
        let range = [repeated.leastMilliseconds, repeated.greatestMilliseconds].map { $0 * number }
        require(
            count > 0 && range[0] <= range[1] && total >= range[0] - number && total <= range[1] + number,
            at: "repeated",
            "\(count) stalls of \(repeated.leastMilliseconds) to \(repeated.greatestMilliseconds) ms cannot last \(total) ms"
        )
    }

    private mutating func check(_ cause: StallReport.Cause) {
        checkWord(cause.kind.rawValue, at: "cause.kind")
        checkWord(cause.confidence.rawValue, at: "cause.confidence")
        checkWord(cause.lock?.kind.rawValue, at: "cause.lock.kind")
        checkNumber(cause.onCPUMilliseconds, at: "cause.onCPUMilliseconds")
        checkNumber(cause.runQueueMilliseconds, at: "cause.runQueueMilliseconds")
        checkNumber(cause.blockedMilliseconds, at: "cause.blockedMilliseconds")
        checkNumber(cause.uncertaintyMilliseconds, at: "cause.uncertaintyMilliseconds")
        checkNumber(cause.throttledMilliseconds, at: "cause.throttledMilliseconds")
        checkNumber(cause.stolenMilliseconds, at: "cause.stolenMilliseconds")
        checkNumber(cause.pressure?.cpuSomeAvg10, at: "cause.pressure.cpuSomeAvg10")
        checkNumber(cause.pressure?.ioSomeAvg10, at: "cause.pressure.ioSomeAvg10")
        checkNumber(cause.pressure?.memorySomeAvg10, at: "cause.pressure.memorySomeAvg10")
        checkShare(cause.kernelShare, at: "cause.kernelShare")
        checkPeers(of: cause.systemCall, at: "cause.systemCall")
        checkAddress(cause.lock?.address, at: "cause.lock.address")
        for (index, owner) in (cause.lock?.owners ?? []).enumerated() {
            checkAddress(owner.waitsForAddress, at: "cause.lock.owners[\(index)].waitsForAddress")
            checkWord(owner.waitsFor?.rawValue, at: "cause.lock.owners[\(index)].waitsFor")
            checkPeers(of: owner.systemCall, at: "cause.lock.owners[\(index)].systemCall")
            let time = owner.time
            for part in [time?.observedMilliseconds, time?.onCPUMilliseconds, time?.runQueueMilliseconds] {
                checkNumber(part, at: "cause.lock.owners[\(index)].time")
            }
            for nice in [owner.priorityInversion?.nice, owner.priorityInversion?.waiterNice] {
                let isValid = nice.map { -20...19 ~= $0 } ?? true
                require(isValid, at: "cause.lock.owners[\(index)].priorityInversion", "no nice value")
            }
        }
    }

    private mutating func check(_ context: StallReport.Context?, at place: @autoclosure () -> String) {
        guard let context else { return }
        for (name, id, digits) in [("traceID", context.traceID, 32), ("spanID", context.spanID, 16)] {
            guard let id else { continue }
            require(
                id.utf8.count == digits && id.isHexadecimal, at: "\(place()).\(name)",
                "\"\(id)\" does not have \(digits) hexadecimal digits")
        }
        checkCount(context.omittedAttributes, at: "\(place()).omittedAttributes")
        let attributes = context.attributes?.count ?? 0
        require(
            attributes <= StallReport.Context.maximumAttributes, at: "\(place()).attributes",
            "there are \(attributes), but the limit is \(StallReport.Context.maximumAttributes)")
    }

    private mutating func checkSamples(of report: StallReport) {
        for (index, sample) in report.samples.enumerated() {
            checkWord(sample.threadState?.rawValue, at: "samples[\(index)].threadState")
            checkWord(sample.method?.rawValue, at: "samples[\(index)].method")
            checkPositive(sample.timesSeen, at: "samples[\(index)].timesSeen", refusesNegative: true)
            checkDuration(sample.atMilliseconds, at: "samples[\(index)].atMilliseconds")
            checkDuration(sample.weightMilliseconds, at: "samples[\(index)].weightMilliseconds")
            checkDuration(sample.heldMicroseconds, at: "samples[\(index)].heldMicroseconds")
            checkDuration(sample.captureMicroseconds, at: "samples[\(index)].captureMicroseconds")
            for (group, workers) in (sample.workers ?? []).enumerated() where !isForReading {
                for (number, thread) in workers.threads.enumerated() {
                    check(thread.context, at: "samples[\(index)].workers[\(group)].threads[\(number)].context")
                }
            }
        }
        for (index, other) in (report.otherThreads ?? []).enumerated() {
            checkWord(other.threadState?.rawValue, at: "otherThreads[\(index)].threadState")
            checkWord(other.method?.rawValue, at: "otherThreads[\(index)].method")
            checkDuration(other.heldMicroseconds, at: "otherThreads[\(index)].heldMicroseconds")
            if !isForReading { check(other.thread.context, at: "otherThreads[\(index)].thread.context") }
        }
    }

    private mutating func checkHistory(of report: StallReport) {
        for (number, loop) in (report.history?.loops ?? []).enumerated() {
            checkWord(loop.kind.rawValue, at: "history.loops[\(number)].kind")
            for (index, turn) in loop.turns.enumerated() {
                func place(_ name: String) -> String { "history.loops[\(number)].turns[\(index)].\(name)" }
                // A turn may begin before the stall.
                if !abs(turn.atMilliseconds).isDuration {
                    refuse(notADuration(turn.atMilliseconds, at: place("atMilliseconds")))
                }
                checkDuration(turn.durationMilliseconds, at: place("durationMilliseconds"))
                checkDuration(turn.waitedMilliseconds, at: place("waitedMilliseconds"))
            }
        }
    }

    private mutating func checkFrames(of report: StallReport) {
        for (index, frame) in report.frames.enumerated() {
            checkAddress(frame.offset, at: "frames[\(index)].offset")
            checkPositive(frame.line, at: "frames[\(index)].line")
            checkPositive(frame.column, at: "frames[\(index)].column")
            checkWord(frame.kind.rawValue, at: "frames[\(index)].kind")
            checkIndex(frame.image, at: "frames[\(index)].image", of: "image", count: report.images.count)
        }
        for (index, image) in report.images.enumerated() {
            checkAddress(image.baseAddress, at: "images[\(index)].baseAddress")
            if let buildID = image.buildID {
                require(buildID.isHexadecimal, at: "images[\(index)].buildID", "\"\(buildID)\" is not hexadecimal")
            }
        }
    }

    private mutating func checkIndices(of report: StallReport) {
        let stacks = report.stacks.count
        for (index, sample) in report.samples.enumerated() {
            checkIndex(sample.stack, at: "samples[\(index)].stack", of: "stack", count: stacks)
            for (group, workers) in (sample.workers ?? []).enumerated() {
                checkIndex(
                    workers.stack, at: "samples[\(index)].workers[\(group)].stack", of: "stack", count: stacks)
            }
        }
        for (index, other) in (report.otherThreads ?? []).enumerated() {
            checkIndex(other.stack, at: "otherThreads[\(index)].stack", of: "stack", count: stacks)
            for (number, owner) in (other.lock?.owners ?? []).enumerated() {
                checkIndex(
                    owner.stack, at: "otherThreads[\(index)].lock.owners[\(number)].stack", of: "stack", count: stacks)
            }
        }
        for (index, wait) in (report.waits ?? []).enumerated() {
            checkIndex(wait.stack, at: "waits[\(index)].stack", of: "stack", count: stacks)
        }
        if let fault = report.tasks?.fault(stacks: stacks) { refuse("tasks: \(fault)") }
        for (index, owner) in (report.cause?.lock?.owners ?? []).enumerated() {
            checkIndex(owner.stack, at: "cause.lock.owners[\(index)].stack", of: "stack", count: stacks)
        }
        for (index, stack) in report.stacks.enumerated() {
            for (position, frame) in stack.enumerated() where !report.frames.indices.contains(frame) {
                checkIndex(frame, at: "stacks[\(index)][\(position)]", of: "frame", count: report.frames.count)
            }
        }
    }

    /// Checks that the parts of a time are not longer than the whole.
    ///
    /// They are rounded to microseconds each, and may begin before the turn by what the report calls uncertain.
    private mutating func checkParts(of report: StallReport) {
        let whole = report.durationMilliseconds
        guard whole.isDuration else { return }
        if let cause = report.cause {
            let parts = cause.onCPUMilliseconds + cause.runQueueMilliseconds + cause.blockedMilliseconds
            let slack = Self.slack + cause.uncertaintyMilliseconds + (report.startUncertaintyMilliseconds ?? 0)
            require(
                parts <= whole + slack, at: "cause", "its parts add up to \(parts) ms, but the stall lasted \(whole) ms"
            )
        }
        let weights = report.samples.reduce(0) { $0 + ($1.weightMilliseconds ?? 0) }
        require(
            weights <= whole + Self.slack, at: "samples",
            "they stand for \(weights) ms, but the stall lasted \(whole) ms")
    }

    // MARK: - Rules

    private mutating func add(_ place: String, _ message: String, _ refusal: String?) {
        if refusal == nil, isForReading { return }
        faults.append(ReportFault(path: "$.\(place)", message: message, refusal: refusal))
    }

    private mutating func refuse(_ refusal: String) { faults.append(ReportFault(refusal: refusal)) }

    private mutating func require(
        _ isRight: @autoclosure () -> Bool, at place: @autoclosure () -> String, _ message: @autoclosure () -> String
    ) {
        if !isForReading, !isRight() { add(place(), message(), nil) }
    }

    mutating func checkDuration(_ value: Double?, at place: @autoclosure () -> String) {
        guard let value, !value.isDuration else { return }
        let refusal = notADuration(value, at: place())
        if value < 0 { add(place(), "\(value) is negative", refusal) } else { refuse(refusal) }
    }

    mutating func checkCount(_ value: Int?, at place: @autoclosure () -> String) {
        guard let value else { return }
        if value < 0 {
            add(place(), "\(Double(value)) is negative", "\(place()) is \(value), but a count cannot be negative")
        } else if value > ReportFault.maximumCount {
            refuse("\(place()) is \(value), but a count is at most \(ReportFault.maximumCount)")
        }
    }

    mutating func checkPositive(
        _ value: Int?, at place: @autoclosure () -> String, refusesNegative: Bool = false
    ) {
        guard let value, value < 1 else { return }
        let isRefused = refusesNegative && value < 0
        let refusal = isRefused ? "\(place()) is \(value), but a count cannot be negative" : nil
        add(place(), "\(value) is less than 1", refusal)
    }

    private mutating func checkNumber(_ value: Double?, at place: @autoclosure () -> String) {
        if let value { require(value >= 0, at: place(), "\(value) is negative") }
    }

    private mutating func checkShare(_ value: Double?, at place: @autoclosure () -> String) {
        if let value { require((0...1).contains(value), at: place(), "\(value) is not between 0 and 1") }
    }

    mutating func checkWord(_ word: String?, at place: @autoclosure () -> String) {
        if let word { require(!word.isEmpty, at: place(), "the word is empty") }
    }

    private mutating func checkAddress(_ text: String?, at place: @autoclosure () -> String) {
        guard let text else { return }
        require(
            text.hasPrefix("0x") && text.dropFirst(2).isHexadecimal, at: place(),
            "\"\(text)\" is not an address such as 0x1f3a0")
    }

    private mutating func checkIndex(
        _ index: Int?, at place: @autoclosure () -> String, of element: String, count: Int
    ) {
        guard let index, !(0..<count).contains(index) else { return }
        let elements = count == 1 ? "there is 1 \(element)" : "there are \(count) \(element)s"
        refuse("\(place()) is \(index), but \(elements)")
    }

    private func notADuration(_ value: Double, at place: String) -> String {
        "\(place) is \(value), but a duration is at least 0 and less than 1e15"
    }
}

extension Double {
    fileprivate var isDuration: Bool { self >= 0 && self < StallReport.maximumMilliseconds }
}
