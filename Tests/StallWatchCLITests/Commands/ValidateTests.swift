import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ValidateTests {
    @Test func everyFaultIsToldWithItsPath() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1)])
        try scratch.write(
            "stall-faulty.json",
            ReportFixture(number: 2, milliseconds: -1).json
                .replacingOccurrences(of: "\"turn\": 7, ", with: "").replacingOccurrences(of: "\"0x8a1c4\"", with: "99")
        )
        try scratch.write(
            "stall-nowhere.json", ReportFixture().json.replacingOccurrences(of: "[0, 1, 2, 3]", with: "[77]"))
        try scratch.write("stall-rubbish.json", "rubbish")
        let result = try Tool.run(["validate", "."], in: scratch)
        #expect(
            result.output == """
                ./stall-faulty.json: $.durationMilliseconds: -1 is less than 0
                ./stall-faulty.json: $.frames[0].offset: 99 is not of type string
                ./stall-faulty.json: $.loop: turn is missing
                ./stall-nowhere.json: $: this is not a stall report: stacks[0][0] is 77, but there are 5 frames
                ./stall-rubbish.json: $: it is not JSON: a value is expected, at byte 0
                1 valid, 3 faulty

                """
        )
        #expect(result.errors == "")
        #expect(result.status == 65)
    }

    /// What the tool takes for granted once a report has been read.
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
    func whatNoSchemaCanSayIsCheckedToo(right: String, wrong: String, fault: String) throws {
        let text = ReportFixture().json
        try #require(text.contains(right))
        let parsed = ValidateCommand.Parsed(Array(text.replacingOccurrences(of: right, with: wrong).utf8))
        let message = "this is not a stall report: " + fault
        #expect(parsed.faults(by: try ReportSchema.checker()) == [.init(path: "$", message: message)])
    }

    @Test func jsonHasTheSame() throws {
        let scratch = try TemporaryDirectory()
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
        let scratch = try TemporaryDirectory()
        try scratch.write((1...5).map { ReportFixture(number: $0) })
        let result = try Tool.run(["validate", scratch.path])
        #expect(result.output == "5 valid, 0 faulty\n")
        #expect(result.status == 0)
    }

    /// The published schema is the one that is built in, and nothing in it is passed over.
    @Test func theSchemaIsUnderstood() throws {
        let published = try Data(contentsOf: Repository.root.appendingPathComponent("Schemas/stall-report.schema.json"))
        #expect([UInt8](published) == PackageResources.stall_report_schema_json)
        _ = try ReportSchema.checker()
        for keyword in ["maxLength", "oneOf", "format"] {
            let schema = JSONValue.object(["type": .string("object"), keyword: .number(1)])
            #expect(throws: JSONSchema.Unsupported(reason: keyword)) { try SchemaChecker(schema: schema) }
        }
    }

    /// The checker finds what Python's jsonschema finds, at the same places, in reports that are changed at random.
    @Test func pythonsJSONSchemaAgrees() throws {
        let scratch = try TemporaryDirectory()
        let checker = try ReportSchema.checker()
        var generator = SeededGenerator(seed: 8)
        let good = try JSONValue(json: ReportFixture().bytes)
        var ours: Set<String> = []
        var faulty = 0
        let documents = 300
        for number in 0..<documents {
            var document = good
            for _ in 0..<(number % 4) { document.mutate(with: &generator) }
            let name = "stall-\(number).json"
            try scratch.write(name, document.text)
            let faults = checker.faults(in: document)
            faulty += faults.isEmpty ? 0 : 1
            for fault in faults { ours.insert("\(name): \(fault.path)") }
        }
        try #require(faulty > documents / 3 && faulty < documents)

        let result = try Repository.validateReports(scratch.path, isStrict: false)
        try #require(
            result.output == "\(documents - faulty) valid, \(faulty) faulty\n", "\(result.errors.prefix(500))")
        let theirs = Set(
            result.errors.split(separator: "\n").compactMap { line in
                line.firstRange(of: ": ").flatMap { name in
                    line[name.upperBound...].firstRange(of: ": ").map { String(line[..<$0.lowerBound]) }
                }
            }
        )
        #expect(ours == theirs, "\(ours.symmetricDifference(theirs).sorted().prefix(10))")
    }
}

extension JSONValue {
    /// Changes one value somewhere below, or takes it away.
    mutating func mutate(with generator: inout SeededGenerator) {
        let others: [JSONValue] = [
            .null, .boolean(true), .number(-1), .number(0.5), .number(3), .string(""), .string("0x1F"), .array([]),
            .object([:]), .array([.number(-1)]),
        ]
        switch self {
        case .object(var fields) where !fields.isEmpty && Int.random(in: 0..<8, using: &generator) > 0:
            let keys = fields.keys.sorted()
            let key = keys[Int.random(in: 0..<keys.count, using: &generator)]
            if Int.random(in: 0..<6, using: &generator) == 0 {
                fields[key] = nil
            } else {
                fields[key]?.mutate(with: &generator)
            }
            self = .object(fields)
        case .array(var elements) where !elements.isEmpty && Int.random(in: 0..<8, using: &generator) > 0:
            elements[Int.random(in: 0..<elements.count, using: &generator)].mutate(with: &generator)
            self = .array(elements)
        default:
            self = others[Int.random(in: 0..<others.count, using: &generator)]
        }
    }

    /// The document as JSON.
    var text: String {
        switch self {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .number(let value): value == value.rounded() ? "\(Int(value))" : "\(value)"
        case .string(let value): "\"\(value)\""
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
        case .object(let fields):
            "{\(fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value.text)" }.joined(separator: ","))}"
        }
    }
}
