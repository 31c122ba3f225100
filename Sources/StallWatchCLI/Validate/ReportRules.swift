import StallReports
import Foundation

/// Checks a report's JSON: its shape with the report's decoder, then its values.
///
/// Unknown fields and unknown words are allowed, because a newer version may have added them. `null` counts as a missing
/// field.
struct ReportRules {
    /// The most faults that are listed for one report.
    static let maximumFaults = 100

    private var faults: [ReportFault] = []

    /// Returns the first fault of the shape or, in a report that can be decoded, every fault of its values,
    /// ``maximumFaults`` at most.
    static func faults(in json: [UInt8]) -> [ReportFault] {
        do {
            let report = try JSONDecoder().decode(StallReport.self, from: Data(json))
            let faults = ReportRules(report).faults
            if !faults.isEmpty { return Array(faults.prefix(maximumFaults)) }
        } catch let error as DecodingError {
            if let fault = newerVersion(json) { return [fault] }
            return [ReportFault(error, in: json)]
        } catch {
            return [ReportFault(path: "$", message: "\(error)")]
        }
        // The library's own checks: indices, sizes, and the version.
        do throws(StallWatchError) {
            _ = try StallReport(jsonData: json)
            return []
        } catch {
            return [ReportFault(path: "$", message: error.description)]
        }
    }

    private struct Version: Decodable {
        var schemaVersion: Int
    }

    /// A newer version may have changed the very field that could not be decoded.
    private static func newerVersion(_ json: [UInt8]) -> ReportFault? {
        guard let version = try? JSONDecoder().decode(Version.self, from: Data(json)).schemaVersion,
            version > StallReport.currentSchemaVersion
        else { return nil }
        return ReportFault(path: "$.schemaVersion", message: UnreadableReport(newerVersion: version).reason)
    }

    private init(_ report: StallReport) {
        require(Self.isIdentifier(report.id), "id", "\"\(report.id)\" is not a UUID of version 7 in lowercase")
        if let fingerprint = report.fingerprint {
            require(
                fingerprint.utf8.count == 16 && Self.isHexadecimal(fingerprint), "fingerprint",
                "\"\(fingerprint)\" does not have 16 hexadecimal digits")
        }
        checkWords([
            ("kind", report.kind.rawValue), ("state", report.state.rawValue), ("callout", report.callout?.rawValue),
            ("loop.kind", report.loop.kind.rawValue),
        ])
        checkNumbers([
            ("durationMilliseconds", report.durationMilliseconds),
            ("thresholdMilliseconds", report.thresholdMilliseconds),
            ("startUncertaintyMilliseconds", report.startUncertaintyMilliseconds),
            ("repeats", Double(report.repeats)), ("loop.nesting", Double(report.loop.nesting)),
            ("omittedThreads", report.omittedThreads.map(Double.init)),
            ("history.windowMilliseconds", report.history?.windowMilliseconds),
            ("history.omittedLoops", report.history?.omittedLoops.map(Double.init)),
            ("monitor.watchdogLateMilliseconds", report.monitor.watchdogLateMilliseconds),
        ])
        checkPositive([("process.pid", Int(report.process.pid)), ("culprit.line", report.culprit?.line)])
        require(report.monitor.captureMethods != nil, "monitor", "captureMethods is missing")
        if let share = report.culprit?.share {
            require((0...1).contains(share), "culprit.share", "\(share) is not between 0 and 1")
        }
        if let cause = report.cause { check(cause) }
        check(report.context, at: "context")
        checkCaptures(of: report)
        checkHistory(of: report)
        for (index, frame) in report.frames.enumerated() {
            let place = "frames[\(index)]"
            checkAddress("\(place).offset", frame.offset)
            checkPositive([("\(place).line", frame.line), ("\(place).column", frame.column)])
            checkWords([("\(place).kind", frame.kind.rawValue)])
        }
        for (index, image) in report.images.enumerated() {
            checkAddress("images[\(index)].baseAddress", image.baseAddress)
            if let buildID = image.buildID {
                require(
                    Self.isHexadecimal(buildID), "images[\(index)].buildID", "\"\(buildID)\" is not hexadecimal")
            }
        }
    }

    private mutating func check(_ cause: StallReport.Cause) {
        checkWords([
            ("cause.kind", cause.kind.rawValue), ("cause.confidence", cause.confidence.rawValue),
            ("cause.lock.kind", cause.lock?.kind.rawValue),
        ])
        checkNumbers([
            ("cause.onCPUMilliseconds", cause.onCPUMilliseconds),
            ("cause.runQueueMilliseconds", cause.runQueueMilliseconds),
            ("cause.blockedMilliseconds", cause.blockedMilliseconds),
            ("cause.uncertaintyMilliseconds", cause.uncertaintyMilliseconds),
            ("cause.throttledMilliseconds", cause.throttledMilliseconds),
            ("cause.pressure.cpuSomeAvg10", cause.pressure?.cpuSomeAvg10),
            ("cause.pressure.ioSomeAvg10", cause.pressure?.ioSomeAvg10),
            ("cause.pressure.memorySomeAvg10", cause.pressure?.memorySomeAvg10),
        ])
        if let share = cause.kernelShare {
            require((0...1).contains(share), "cause.kernelShare", "\(share) is not between 0 and 1")
        }
        checkAddress("cause.lock.address", cause.lock?.address)
        for (index, owner) in (cause.lock?.owners ?? []).enumerated() {
            checkAddress("cause.lock.owners[\(index)].waitsForAddress", owner.waitsForAddress)
            checkWords([("cause.lock.owners[\(index)].waitsFor", owner.waitsFor?.rawValue)])
        }
    }

    private mutating func check(_ context: StallReport.Context?, at place: String) {
        guard let context else { return }
        for (name, id, digits) in [("traceID", context.traceID, 32), ("spanID", context.spanID, 16)] {
            guard let id else { continue }
            require(
                id.utf8.count == digits && Self.isHexadecimal(id), "\(place).\(name)",
                "\"\(id)\" does not have \(digits) hexadecimal digits")
        }
        checkNumbers([("\(place).omittedAttributes", context.omittedAttributes.map(Double.init))])
        let attributes = context.attributes?.count ?? 0
        require(
            attributes <= StallReport.Context.maximumAttributes, "\(place).attributes",
            "there are \(attributes), but the limit is \(StallReport.Context.maximumAttributes)")
    }

    private mutating func checkCaptures(of report: StallReport) {
        for (index, sample) in report.samples.enumerated() {
            let place = "samples[\(index)]"
            checkWords([
                ("\(place).threadState", sample.threadState?.rawValue), ("\(place).method", sample.method?.rawValue),
            ])
            checkPositive([("\(place).timesSeen", sample.timesSeen)])
            checkNumbers([
                ("\(place).atMilliseconds", sample.atMilliseconds),
                ("\(place).weightMilliseconds", sample.weightMilliseconds),
                ("\(place).heldMicroseconds", sample.heldMicroseconds),
                ("\(place).captureMicroseconds", sample.captureMicroseconds),
            ])
        }
        for (index, other) in (report.otherThreads ?? []).enumerated() {
            let place = "otherThreads[\(index)]"
            checkWords([
                ("\(place).threadState", other.threadState?.rawValue), ("\(place).method", other.method?.rawValue),
            ])
            checkNumbers([("\(place).heldMicroseconds", other.heldMicroseconds)])
        }
        for (place, thread) in report.describedThreads { check(thread.context, at: "\(place).context") }
        for (index, method) in (report.monitor.captureMethods ?? []).enumerated() {
            checkWords([("monitor.captureMethods[\(index)]", method.rawValue)])
        }
    }

    private mutating func checkHistory(of report: StallReport) {
        for (number, loop) in (report.history?.loops ?? []).enumerated() {
            checkWords([("history.loops[\(number)].kind", loop.kind.rawValue)])
            for (index, turn) in loop.turns.enumerated() {
                let place = "history.loops[\(number)].turns[\(index)]"
                checkNumbers([
                    ("\(place).durationMilliseconds", turn.durationMilliseconds),
                    ("\(place).waitedMilliseconds", turn.waitedMilliseconds),
                ])
            }
        }
    }

    // MARK: - Rules

    private mutating func require(_ isRight: Bool, _ place: String, _ message: @autoclosure () -> String) {
        if !isRight { faults.append(ReportFault(path: "$.\(place)", message: message())) }
    }

    private mutating func checkNumbers(_ numbers: [(place: String, value: Double?)]) {
        for case (let place, let value?) in numbers { require(value >= 0, place, "\(value) is negative") }
    }

    private mutating func checkPositive(_ numbers: [(place: String, value: Int?)]) {
        for case (let place, let value?) in numbers { require(value >= 1, place, "\(value) is less than 1") }
    }

    private mutating func checkWords(_ words: [(place: String, value: String?)]) {
        for case (let place, let value?) in words { require(!value.isEmpty, place, "the word is empty") }
    }

    private mutating func checkAddress(_ place: String, _ text: String?) {
        guard let text else { return }
        require(
            text.hasPrefix("0x") && Self.isHexadecimal(text.dropFirst(2)), place,
            "\"\(text)\" is not an address such as 0x1f3a0")
    }

    private static func isHexadecimal(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
    }

    private static func isIdentifier(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.utf8.count) == [8, 4, 4, 4, 12] && parts.allSatisfy { isHexadecimal($0) }
            && parts[2].hasPrefix("7") && ["8", "9", "a", "b"].contains(parts[3].prefix(1))
    }
}
