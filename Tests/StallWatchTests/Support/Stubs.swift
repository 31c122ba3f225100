import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// A capturer without pending captures.
extension StackCapturing {
    var unwinder: Unwinder { Unwinder(name: "built-in") }
    var timeTaken: UInt64 { 0 }
    func capture(
        _ probe: ThreadProbe, at reading: ThreadReading, mayStop: Bool, mayWait: Bool
    ) throws(CaptureFailure) -> CapturedStack {
        try capture(thread: probe.thread, mayStop: mayStop, mayWait: mayWait)
    }
    func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureFailure>? { nil }
    func cancelPendingCapture(of thread: Int32) {}
    func images() -> ImageList { ImageList() }
}

final class StubCapturer: StackCapturing {
    let methods = [StallReport.CaptureMethod.read, .ptrace]
    /// Returns the answer for a thread that may be stopped, or must not be.
    var answer: (_ mayStop: Bool) -> Result<CapturedStack, CaptureFailure>
    /// How often the thread might have been stopped.
    private(set) var stops = 0

    init(_ answer: @escaping (_ mayStop: Bool) -> Result<CapturedStack, CaptureFailure>) { self.answer = answer }

    convenience init(_ answer: Result<CapturedStack, CaptureFailure> = .success(.stub([0x1000]))) {
        self.init { _ in answer }
    }

    func capture(thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureFailure) -> CapturedStack {
        stops += mayStop ? 1 : 0
        return try answer(mayStop).get()
    }
}

/// A source whose thread the test sets; at first an id that no thread has (proc(5), pid_max).
final class ThreadSource: LoopSource {
    let kind: LoopKind
    let thread = Atomic<Int32>(.max)

    init(_ kind: LoopKind = .runLoop) { self.kind = kind }

    func target(of recorder: TurnRecorder) -> CaptureTarget { .thread(thread.load(ordering: .relaxed)) }
}

/// The source of a loop of a monitor's own.
final class OwnSource: LoopSource {
    let kind = LoopKind.probe
    let receiver: StallReceiver? = { _ in }
}

extension LoopMonitor {
    static func stub(_ label: String, threshold: UInt64, _ source: any LoopSource) -> LoopMonitor {
        LoopMonitor(label: label, threshold: threshold, recorder: TurnRecorder(alarm: WatchdogAlarm()), source: source)
    }
}

extension StallRecord {
    /// A stall of the loop "main" that has taken 400 ms.
    static func stub(
        id: String = "a", kind: Kind = .stall, state: StallRecord.State = .ended, samples: [Sample] = []
    ) -> StallRecord {
        StallRecord(
            id: id,
            kind: kind,
            loop: StallRecord.Loop(
                label: "main", kind: .runLoop, turn: 12, nesting: 0,
                thread: .init(id: 4700, name: "notes")
            ),
            threshold: 250_000_000,
            startedAt: Timestamp(microsecondsSince1970: 1_795_248_000_123_456),
            watchdogLate: 200_000,
            state: state,
            duration: 400_000_000,
            samples: samples
        )
    }
}

extension ReportBuilder {
    /// Returns a builder that finds the names in `symbols`, by image name and offset.
    static func stub(_ symbols: [String: [UInt64: String]] = [:]) -> ReportBuilder {
        .stub(metadata: ["version": "1.4.2"], TableSymbolicator(symbols: symbols))
    }

    /// Returns a builder that gets its names from `symbolicator`, without a time limit.
    static func stub(
        process: StallReport.ProcessDescription = .current(), metadata: [String: String] = [:],
        _ symbolicator: any Symbolicating
    ) -> ReportBuilder {
        ReportBuilder(
            process: process, metadata: metadata, inApp: InAppSettings(),
            symbolication: ReportSymbolication(
                symbolicator: symbolicator, functions: FunctionClassifier(InAppSettings()), ownExecutable: nil,
                timeLimit: .max, timeout: .max
            )
        )
    }
}

/// A symbolicator that finds names in a table, by image name and offset, and nothing else.
final class TableSymbolicator: Symbolicating {
    private let symbols: [String: [UInt64: String]]
    private let willLookUp: () -> Void

    init(symbols: [String: [UInt64: String]], willLookUp: @escaping () -> Void = {}) {
        (self.symbols, self.willLookUp) = (symbols, willLookUp)
    }

    func symbol(at offset: UInt64, in image: ImageIdentity) -> String? {
        willLookUp()
        return symbols[image.path.split(separator: "/").last.map(String.init) ?? image.path]?[offset]
    }

    func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
        ResolvedAddress(locations: [CodeLocation(symbol: symbol(at: offset, in: image))])
    }

    func calledFunction(before returnAddress: UInt64, in image: ImageIdentity) -> CalledFunction? { nil }
    func function(startingAt address: UInt64, in image: ImageIdentity) -> CalledFunction? { nil }
    func importedSymbol(calledBefore returnAddress: UInt64, in image: ImageIdentity) -> String? { nil }
    func exportedFunction(_ symbol: String, of image: ImageIdentity) -> CalledFunction? { nil }
    func sibling(of function: CalledFunction, in image: ImageIdentity, deadline: UInt64) -> CodeLocation? { nil }

    func reason(for image: ImageIdentity) -> String? { nil }

    func releaseMemory() {}
}

/// The surroundings of a loop's supervisor: a clock that the test sets, and the records that the supervisor submits.
final class WatchedWorld: Sendable {
    let time: Atomic<UInt64>
    let records = Mutex<[StallRecord]>([])
    let suppressed = SuppressionCounter()

    init(at time: UInt64) {
        self.time = Atomic(time)
    }

    var states: [StallRecord.State] { records.withLock { $0.map(\.state) } }

    func context(
        _ capturer: any StackCapturing, options: WatchdogOptions = .init(),
        delaysNoTask: @escaping (LoopMonitor, [LoopMonitor]) -> Bool = { _, _ in false }
    ) -> WatchdogContext {
        WatchdogContext(
            capturer: capturer, now: { self.time.load(ordering: .relaxed) },
            submit: { record in self.records.withLock { $0.append(record) } }, suppressed: suppressed,
            options: options, delaysNoTask: delaysNoTask
        )
    }
}

extension WatchdogContext {
    /// Uses up the time for looks in this pass, for which the clock goes on.
    func useUpLooks(in world: WatchedWorld) {
        for _ in 0..<LookBudget.freeLooks {
            look { _ = world.time.wrappingAdd(LookBudget.longestPass, ordering: .relaxed) }
        }
    }
}

/// Moves a test's clock to the next poll, or to its end if time stands still, which would never end the test.
func advance(_ time: inout UInt64, to next: UInt64) {
    #expect(next > time)
    time = next > time ? next : .max
}

extension LoopSupervisor {
    @discardableResult
    mutating func poll(at time: UInt64, in world: WatchedWorld) -> UInt64 {
        world.time.store(time, ordering: .relaxed)
        return poll(at: time, countingFrom: 0, suppressed: .processStopped)
    }
}
