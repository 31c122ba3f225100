import Foundation
import Measuring
import StallWatch

/// The stack, images and times that the program printed.
struct SymbolicationHost {
    private(set) var cold = 0.0
    private(set) var warm = 0.0
    private(set) var known = 0
    private var images: [(path: String, base: UInt64, buildID: String?)] = []
    private var addresses: [UInt64] = []

    init(_ program: String) throws {
        for line in try output(of: program).split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            switch words[0] {
            case "cold": cold = (Double(words[1]) ?? 0) / 1e6
            case "warm": warm = (Double(words[1]) ?? 0) / 1e6
            case "known": known = Int(words[1]) ?? 0
            case "frame": addresses.append(Self.number(words[1]))
            // Assumes a path without blanks; another one is an error below.
            case "image" where words.count == 4:
                images.append((words[1], Self.number(words[2]), words[3] == "-" ? nil : words[3]))
            default: throw CannotMeasure("the program printed '\(line)'")
            }
        }
        images.sort { $0.base < $1.base }
    }

    /// The stack as a report without names; as in every report, equal frames are stored once.
    func report() throws -> StallReport {
        var numbers: [UInt64: Int] = [:]
        for address in addresses where numbers[address] == nil { numbers[address] = numbers.count }
        let frames: [[String: Any]] = numbers.sorted { $0.value < $1.value }.map { address, _ in
            guard let index = images.lastIndex(where: { $0.base <= address }) else {
                return ["offset": Self.text(address), "isInApp": false, "kind": "code"]
            }
            return [
                "image": index, "offset": Self.text(address - images[index].base), "isInApp": index == 0,
                "kind": "code",
            ]
        }
        let list: [[String: Any]] = images.map { image in
            var fields: [String: Any] = [
                "name": URL(fileURLWithPath: image.path).lastPathComponent, "path": image.path,
                "baseAddress": Self.text(image.base),
            ]
            fields["buildID"] = image.buildID
            return fields
        }
        let report: [String: Any] = [
            "schemaVersion": 1, "id": "00000000-0000-7000-8000-000000000000", "kind": "stall", "state": "ended",
            "startedAt": "2026-01-01T00:00:00.000000Z", "durationMilliseconds": 300, "thresholdMilliseconds": 250,
            "process": [
                "name": "host", "pid": 1, "startedAt": "2026-01-01T00:00:00.000000Z", "executable": "host",
                "architecture": "-", "operatingSystem": "-", "kernel": "-", "hostname": "-", "bootID": "-",
            ],
            "metadata": [String: Any](), "loop": ["label": "main", "kind": "runLoop", "turn": 1, "nesting": 0],
            "repeats": 0,
            "samples": [
                [
                    "atMilliseconds": 250, "stack": 0, "isValid": true, "isComplete": true, "heldMicroseconds": 0,
                    "captureMicroseconds": 0,
                ]
            ],
            "stacks": [addresses.compactMap { numbers[$0] }], "frames": frames, "images": list,
            "monitor": ["version": "0", "watchdogLateMilliseconds": 0, "suppressed": [String: Any]()],
        ]
        return try StallReport(jsonData: Array(JSONSerialization.data(withJSONObject: report)))
    }

    private static func number(_ text: String) -> UInt64 {
        UInt64(text.hasPrefix("0x") ? String(text.dropFirst(2)) : text, radix: 16) ?? 0
    }

    private static func text(_ number: UInt64) -> String { "0x" + String(number, radix: 16) }
}
