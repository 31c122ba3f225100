@testable import StallReports
@testable import StackCapture
@testable import StallWatch

/// Reports with one artificial sample.
enum SymbolicationReport {
    /// Returns a report whose stack has an unnamed frame at each offset of one image.
    static func make(imageAt path: String, buildID: String?, offsets: [UInt64]) -> StallReport {
        let base: UInt64 = 0x10_0000_0000
        let image = LoadedImage(
            path: path, base: base, addresses: base..<base + 0x1000_0000, buildID: bytes(ofHexadecimal: buildID ?? ""),
            isExecutable: true
        )
        let stack = CapturedStack(
            method: .ptrace, threadState: .running,
            frames: offsets.map { CapturedStack.Frame(address: base + $0, isExact: true) },
            isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0
        )
        let record = StallRecord(
            id: "00000000-0000-7000-8000-000000000000", kind: .stall,
            loop: StallRecord.Loop(label: "main", kind: .runLoop, turn: 1, nesting: 0),
            threshold: 250_000_000, startedAt: Timestamp(microsecondsSince1970: 0), watchdogLate: 0, state: .ended,
            duration: 300_000_000,
            samples: [.init(age: 250_000_000, isValid: true, stack: .success(stack), images: ImageList([image]))]
        )
        let builder = ReportBuilder(
            process: .current(), metadata: [:], inApp: StallMonitor.InApp(),
            symbolication: .inProcess(.none, inApp: StallMonitor.InApp())
        )
        return builder.report(of: record) { _ in }
    }

    private static func bytes(ofHexadecimal text: String) -> [UInt8] {
        let digits = Array(text)
        return stride(from: 0, to: digits.count - digits.count % 2, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
    }
}
