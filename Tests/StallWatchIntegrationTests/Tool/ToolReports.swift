import Foundation

/// Any number of reports, one per line: 200 kinds of stalls, a few of which are most frequent.
enum ToolReports {
    /// A function that is on the stacks of every third kind.
    static let function = "Store.third()"

    /// Writes the reports from number `first` up to number `end`; kinds are counted from `firstKind`.
    static func write(_ end: Int, from first: Int = 0, firstKind: Int = 0, to path: String) throws {
        var lines = ""
        for number in first..<end {
            // 0, 0, 1, 0, 1, 2, 0, 1, 2, 3 and so on: the first kinds most often.
            let row = Int((Double(2 * number) + 0.25).squareRoot() - 0.5)
            let kind = (firstKind + number - row * (row + 1) / 2) % 200
            lines += line(number, kind: kind, milliseconds: 250 + (number * 7_919) % 9_000)
        }
        try lines.write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func line(_ number: Int, kind: Int, milliseconds: Int) -> String {
        let causes = ["cpu", "lock", "io", "sleep"]
        let names = [
            "libc.wait", kind % 3 == 1 ? function : "Store.other()", "Kind\(kind).work()", "Loop.run()", "main",
        ]
        let frames = names.enumerated().map { place, name in
            """
            {"image":0,"offset":"0x\(String(4_096 + kind * 64 + place, radix: 16))","function":"\(name)","line":\(place + 1),\
            "file":"Sources/\(place).swift","isInApp":\(place > 0),"kind":"code"}
            """
        }
        func twoDigits(_ value: Int) -> String { (value < 10 ? "0" : "") + String(value) }
        let time = [number / 3_600 % 24, number / 60 % 60, number % 60].map(twoDigits).joined(separator: ":")
        return """
            {"schemaVersion":1,"id":"019a0000-0000-7000-8000-\(String(1_000_000_000_000 + number).dropFirst())","kind":"stall",\
            "state":"ended","startedAt":"2026-11-21T\(time).000000Z","durationMilliseconds":\(milliseconds).125,\
            "thresholdMilliseconds":250,"process":{"name":"notes","pid":7,"executable":"/opt/notes","architecture":"x86_64",\
            "kernel":"6","hostname":"h"},"metadata":{"version":"1.4.2"},"loop":{"label":"\(kind % 2 == 0 ? "main" : "storage")",\
            "kind":"runLoop","turn":\(number),"nesting":0,"thread":{"id":\(kind % 2 == 0 ? 7 : 8)}},\
            "fingerprint":"\(String(UInt64(kind + 1) &* 0x9e37_79b9_7f4a_7c15, radix: 16))","repeats":\(number % 3),\
            "culprit":{"function":"Kind\(kind).work()","image":"notes","file":"Sources/Kind.swift","line":\(kind)},\
            "cause":{"kind":"\(causes[kind % 4])","summary":"Blocked for \(milliseconds) of \(milliseconds) ms.",\
            "confidence":"certain","onCPUMilliseconds":1,"runQueueMilliseconds":0,"blockedMilliseconds":\(milliseconds),\
            "uncertaintyMilliseconds":0,"minorFaults":0,"majorFaults":0,"voluntarySwitches":1,"involuntarySwitches":0},\
            "samples":[{"atMilliseconds":250,"stack":0,"isValid":true,"isComplete":true,"heldMicroseconds":0,\
            "captureMicroseconds":90}],"stacks":[[0,1,2,3,4]],"frames":[\(frames.joined(separator: ","))],\
            "images":[{"name":"notes","path":"/opt/notes","buildID":"ab01","baseAddress":"0x1000"}],\
            "monitor":{"version":"0.1.0","watchdogLateMilliseconds":0,"suppressed":{}}}\n
            """
    }
}
