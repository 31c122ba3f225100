import Foundation
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ValidateTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test func eachFaultIsNamedByItsPlace() throws {
        let good = ReportFixture(number: 2).json
        try scratch.write([ReportFixture(number: 1)])
        for (name, right, wrong) in [
            ("field", "\"turn\": 7, ", ""), ("index", "[0, 1, 2, 3]", "[77]"), ("type", "\"0x8a1c4\"", "99"),
        ] {
            try #require(good.contains(right))
            try scratch.write("stall-\(name).json", good.replacingOccurrences(of: right, with: wrong))
        }
        try scratch.write("stall-rubbish.json", "rubbish")
        try scratch.write(
            "stall-values.json",
            ReportFixture(number: 3, milliseconds: -1, pid: 0, fingerprint: "9F2C").json
                .replacingOccurrences(of: "\"0x8a1c4\"", with: "\"8a1c4\"")
        )
        let result = try Tool.run(["validate", "."], in: scratch)
        #expect(
            result.output == """
                ./stall-field.json: $.loop: turn is missing
                ./stall-index.json: $: this is not a stall report: stacks[0][0] is 77, but there are 5 frames
                ./stall-rubbish.json: $: not JSON: Invalid value around character 0
                ./stall-type.json: $.frames[0].offset: Expected to decode String but found number instead
                ./stall-values.json: $.fingerprint: "9F2C" does not have 16 hexadecimal digits
                ./stall-values.json: $.durationMilliseconds: -1.0 is negative
                ./stall-values.json: $.process.pid: 0 is less than 1
                ./stall-values.json: $.frames[0].offset: "8a1c4" is not an address such as 0x1f3a0
                1 valid, 5 faulty

                """
        )
        #expect(result.errors == "")
        #expect(result.status == 65)
    }

    @Test func `a file that cannot be read is faulty`() throws {
        try scratch.write([ReportFixture(number: 1)])
        try scratch.write("stall-large.json", [UInt8](repeating: 32, count: 17 << 20))
        let result = try Tool.run(["validate", "."], in: scratch)
        #expect(result.status == 65)
        #expect(result.output.hasPrefix("./stall-large.json: $: ") && result.output.hasSuffix("\n1 valid, 1 faulty\n"))
        #expect(result.errors.contains("Skipped ./stall-large.json: "))
    }

    @Test(arguments: ["tree", "show", "top", "export", "stats"])
    func `a count that no one can have is refused`(command: String) throws {
        try scratch.write([ReportFixture(number: 1, repeats: .max)])
        let options = command == "export" ? ["--format", "pprof", "-o", scratch.path("out")] : []
        let result = try Tool.run([command, "."] + options, in: scratch)
        #expect(result.status == (command == "stats" ? 1 : 65), "\(result)")
    }

    /// Every command relies on these rules after it has decoded a report.
    @Test(arguments: [
        (
            "\"stack\": 1, \"isRunning\"", "\"stack\": 2, \"isRunning\"",
            "cause.lock.owners[0].stack is 2, but there are 2 stacks"
        ),
        (
            "\"durationMilliseconds\": 500.0", "\"durationMilliseconds\": 1e300",
            "durationMilliseconds is 1e+300, but a duration is at least 0 and less than 1e15"
        ),
    ])
    func faultsThatTheLibraryFindsAreListed(right: String, wrong: String, fault: String) throws {
        let text = ReportFixture().json
        try #require(text.contains(right))
        let faults = StallReport.faults(in: Array(text.replacingOccurrences(of: right, with: wrong).utf8))
        #expect(faults.map(\.description) == ["$: this is not a stall report: " + fault])
    }

    @Test func jsonHasTheSame() throws {
        let lines = [ReportFixture(number: 1).line, ReportFixture(number: 2, milliseconds: -1).line].joined()
        try scratch.write("stalls.ndjson", lines)
        let result = try Tool.run(["validate", "--json", "stalls.ndjson"], in: scratch)
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        #expect(object?["valid"] as? Int == 1)
        #expect(object?["faulty"] as? Int == 1)
        let faults = try #require(object?["faults"] as? [[String: Any]])
        #expect(faults.count == 1)
        #expect(faults[0]["place"] as? String == "$.durationMilliseconds")
        #expect(faults[0]["path"] as? String == "stalls.ndjson")
        #expect(faults[0]["line"] as? Int == 2)
        #expect(result.status == 65)
    }

    @Test func goodReportsAreValid() throws {
        try scratch.write((1...5).map { ReportFixture(number: $0) })
        let result = try Tool.run(["validate", scratch.path])
        #expect(result.output == "5 valid, 0 faulty\n")
        #expect(result.status == 0)
    }

    /// Python's jsonschema accepts and rejects the same randomly changed reports.
    ///
    /// Two exceptions: a schema cannot express that an index is in range, and that parts are not longer than the whole.
    @Test func resultsMatchTheSchema() throws {
        var generator = SeededGenerator(seed: 8)
        let good = try JSONSerialization.jsonObject(with: Data(ReportFixture().bytes))
        var ours: [String: [ReportFault]] = [:]
        let documents = 400
        for number in 0..<documents {
            let document = (0..<(number % 4)).reduce(good) { document, _ in mutated(document, &generator) }
            // Both reject a document that is not an object, but the script reads only files of objects.
            guard document is [String: Any] else { continue }
            let bytes = [UInt8](try JSONSerialization.data(withJSONObject: document))
            let name = "stall-\(number).json"
            try scratch.write(name, bytes)
            ours[name] = StallReport.faults(in: bytes)
        }
        let result = try Repository.validateReports(scratch.path, isStrict: false)
        let lines = result.errors.split(separator: "\n")
        let theirs = Dictionary(grouping: lines) { line in line.split(separator: ":").first.map(String.init) ?? "" }
        try #require(theirs.count > documents / 3 && theirs.count < ours.count)
        for (name, faults) in ours {
            let isOursAlone = faults.allSatisfy {
                $0.message.contains(", but there are ") || $0.message.contains(", but the stall lasted ")
            }
            #expect(
                theirs[name] == nil ? faults.isEmpty || isOursAlone : !faults.isEmpty,
                "\(name): \(faults), \(theirs[name] ?? [])")
        }
    }

    /// Changes one value somewhere in `document`, or removes it.
    private func mutated(_ document: Any, _ generator: inout SeededGenerator) -> Any {
        let others: [Any] = [true, -1, 0.5, 3, "", "0x1F", [Any](), [String: Any](), [-1]]
        let goesDeeper = Int.random(in: 0..<8, using: &generator) > 0
        if var fields = document as? [String: Any], goesDeeper, !fields.isEmpty {
            let key = fields.keys.sorted()[Int.random(in: 0..<fields.count, using: &generator)]
            let isRemoved = Int.random(in: 0..<6, using: &generator) == 0
            fields[key] = isRemoved ? nil : fields[key].map { mutated($0, &generator) }
            return fields
        }
        if var elements = document as? [Any], goesDeeper, !elements.isEmpty {
            let index = Int.random(in: 0..<elements.count, using: &generator)
            elements[index] = mutated(elements[index], &generator)
            return elements
        }
        return others[Int.random(in: 0..<others.count, using: &generator)]
    }

    @Test func nullCountsAsMissing() throws {
        func faults(_ right: String, _ wrong: String) throws -> [ReportFault] {
            let text = ReportFixture().json
            try #require(text.contains(right))
            return StallReport.faults(in: Array(text.replacingOccurrences(of: right, with: wrong).utf8))
        }
        #expect(try faults("\"callout\": \"timer\"", "\"callout\": null") == [])
        let fault = ReportFault(path: "$.state", message: "null is not allowed here")
        #expect(try faults("\"state\": \"ended\"", "\"state\": null").map(\.path) == [fault.path])
    }

    @Test func unknownFieldsAndWordsAreValid() throws {
        let text = ReportFixture(kind: "new kind").json
        let changed = text.replacingOccurrences(of: "\"stacks\":", with: "\"later\": [1, {}], \"stacks\":")
        try #require(changed != text)
        #expect(StallReport.faults(in: Array(changed.utf8)) == [])
    }

    @Test func aNewerVersionIsNamed() throws {
        let text = ReportFixture().json.replacingOccurrences(of: "\"schemaVersion\": 1", with: "\"schemaVersion\": 2")
        for json in [text, text.replacingOccurrences(of: "\"state\": \"ended\",", with: "")] {
            let fault = try #require(StallReport.faults(in: Array(json.utf8)).first)
            #expect(fault.message.contains("schema version 2, and this version reads up to 1"))
        }
    }

    @Test func `parts that are longer than the stall are a fault`() {
        let faults = StallReport.faults(in: ReportFixture(milliseconds: 265).bytes)
        #expect(faults.map(\.description) == ["$.cause: its parts add up to 500.0 ms, but the stall lasted 265.0 ms"])
        #expect(StallReport.faults(in: ReportFixture(milliseconds: 498.6).bytes) == [])
        let heavy = ReportFixture().json.replacingOccurrences(
            of: "\"atMilliseconds\": 375.5,", with: "\"atMilliseconds\": 375.5, \"weightMilliseconds\": 501.5,")
        #expect(StallReport.faults(in: Array(heavy.utf8)).map(\.path) == ["$.samples"])
    }

    @Test func equalFaultsAreSummedUp() throws {
        try scratch.write((1...9).map { ReportFixture(number: $0, milliseconds: -1) })
        let lines = try Tool.run(["validate", "."], in: scratch).output.split(separator: "\n")
        #expect(lines.count == 5)
        #expect(lines[3] == "6 more reports have this fault: $.durationMilliseconds: -1.0 is negative")
        #expect(lines[4] == "0 valid, 9 faulty")
    }
}
