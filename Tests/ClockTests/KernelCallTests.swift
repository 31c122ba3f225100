import CLinux
import CUnwindTestSupport
import Foundation
import Glibc
import LinuxSupport
import StallReports
import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallWatch

/// Stalls in one system call that stays in the kernel: a report with a whole stack, and a call that returns what it
/// returns without a monitor.
///
/// `STALLWATCH_KERNEL_ROUNDS` is the number of stalls of each call; 1 without it.
@Suite(.serialized, .needsPtrace) struct KernelCallTests {
    static let rounds = ProcessInfo.processInfo.environment["STALLWATCH_KERNEL_ROUNDS"].flatMap(Int.init) ?? 1

    /// The most calls for a stall: one may be too short, or the watchdog too late.
    private static let maximumTries = 20

    /// The files of the calls that move them, which take seconds to write.
    private static let files = Result { try KernelCallFiles() }

    /// A turn shorter than this is no stall here.
    static let threshold: UInt64 = 30_000_000
    /// How long the watchdog may need until the thread is asked to stop, in nanoseconds; a call that ends meanwhile has
    /// no stack.
    static let longestAttempt: UInt64 = 60_000_000

    @Test(arguments: KernelCall.allCases)
    func `a stall in the kernel has a whole stack`(call: KernelCall) throws {
        let files = call.movesFiles ? try Self.files.get() : nil
        let collector = Records()
        let watchdog = Watchdog(options: WatchdogOptions()) { collector.add($0) }
        let probe = LoopProbe(label: "kernel")
        let monitors = try WatchedLoop.probe(probe).makeMonitors(threshold: Self.threshold, alarm: watchdog.alarm)
        watchdog.add(monitors)
        let capture = ThreadCapture(engine: try CUnwindEngine(), policy: CapturePolicy(mayUsePtrace: true))
        let transfer = OneShotTransfer(capture)
        // A monitor has threads that rest meanwhile: they show that a watchdog which waits for the process's memory, as for
        // munmap(2), is not a stopped process.
        let isOver = Semaphore()
        let resting = try WorkerThread(name: "test-rest") { isOver.wait(until: endOfPatience) }
        let thread = try WorkerThread(name: "test-dog") {
            CUnwindEngine.requestShortSlice()
            transfer.take().map(watchdog.run)
        }
        defer {
            isOver.post()
            resting.join()
            watchdog.stop()
            thread.join()
            files?.rewind()
        }
        var stalls = 0, whole = 0, named = 0, short = 0
        for _ in 0..<Self.rounds * Self.maximumTries where stalls < Self.rounds {
            let prepared = try #require(call.prepare(files))
            // Preparing takes seconds, for which a watchdog that has just been started may wait, too.
            try #require(watchdog.waitForPass(until: endOfPatience))
            usleep(2_000)
            probe.beginTurn()
            var calls: UInt32 = 0
            let began = monotonicNow()
            let result = cunwind_test_make_big_call(
                call.kind, files?.source ?? -1, files?.sink ?? -1, prepared, call.length, &calls
            )
            let took = monotonicNow() - began
            probe.endTurn()
            if call != .munmap { munmap(prepared, call.length) }
            if !call.isWhole(result) || calls != 1 { short += 1 }
            guard took > Self.threshold + Self.longestAttempt else {
                if took > Self.threshold { _ = collector.last(within: 10) }
                continue
            }
            let record = collector.last(within: 10)
            // On a busy machine the watchdog may get no CPU until the call is nearly over.
            if let late = record?.watchdogLate, took <= Self.threshold + late + Self.longestAttempt { continue }
            stalls += 1
            guard let record else {
                print("\(call): no report of \(took / 1_000_000) ms, \(watchdog.suppressed.current)")
                continue
            }
            let stacks = record.samples.filter(\.isValid).compactMap { try? $0.stack.get() }
            let isWhole = stacks.contains { stack in
                stack.isComplete && stack.frames.contains { cunwind_test_big_call_contains($0.lookupAddress) }
            }
            if isWhole {
                whole += 1
            } else {
                print("\(call): \(took / 1_000_000) ms, samples:")
                for sample in record.samples {
                    print("  \(sample.age / 1_000_000) ms, valid \(sample.isValid), \(sample.stack.summary)")
                }
            }
            if record.cause?.observation?.call?.name == call.rawValue { named += 1 }
        }
        print("\(call): \(stalls) stalls, \(whole) whole, \(named) named, \(short) short")
        #expect(stalls > 0)
        #expect(whole == stalls)
        // The kernel ends this call at any stop.
        if call != .copyFileRange { #expect(short == 0) }
    }

    /// Its first allocations at a stall in munmap(2) made its heap grow, which waited until the stall was over.
    @Test func `a watchdog has memory for a stall before there is one`() throws {
        let isAllOld = Mutex(false)
        try WorkerThread(name: "test-heap") {
            clinux_grow_heap()
            let before = writableMemory()
            // More than a thread's heap has at first (132 KiB).
            let pieces = (0..<300).map { _ in UInt(bitPattern: malloc(1_000)) }
            isAllOld.withLock { $0 = pieces.allSatisfy { piece in before.contains { $0.contains(piece) } } }
            for piece in pieces { free(UnsafeMutableRawPointer(bitPattern: piece)) }
        }.join()
        #expect(isAllOld.withLock { $0 })
    }

    /// The ranges of addresses of this process that can be written (proc_pid_maps(5)).
    private func writableMemory() -> [Range<UInt>] {
        let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
        return maps.split(separator: "\n").filter { $0.contains(" rw") }.compactMap { line in
            let ends = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
            return ends.count == 2 ? ends[0]..<ends[1] : nil
        }
    }
}

extension Result<CapturedStack, CaptureFailure> {
    fileprivate var summary: String {
        switch self {
        case .success(let stack): "\(stack.method), \(stack.frames.count) frames, complete \(stack.isComplete)"
        case .failure(let error): error.description
        }
    }
}

private final class Records: Sendable {
    private let ended = Mutex<[StallRecord]>([])
    private let semaphore = DispatchSemaphore(value: 0)

    func add(_ record: StallRecord) {
        guard record.state == .ended else { return }
        ended.withLock { $0.append(record) }
        semaphore.signal()
    }

    /// The record of the stall that has just ended; `nil` if there is none after some seconds.
    func last(within seconds: Int) -> StallRecord? {
        guard semaphore.wait(timeout: .now() + .seconds(seconds)) == .success else { return nil }
        return ended.withLock { $0.popLast() }
    }
}

/// A call that moves or copies so much at once that the thread stays in the kernel.
enum KernelCall: String, CaseIterable {
    case read, write
    case copyFileRange = "copy_file_range"
    case munmap
    case fork = "clone"

    var kind: cunwind_test_big_call {
        switch self {
        case .read: CUNWIND_TEST_BIG_READ
        case .write: CUNWIND_TEST_BIG_WRITE
        case .copyFileRange: CUNWIND_TEST_BIG_COPY
        case .munmap: CUNWIND_TEST_BIG_MUNMAP
        case .fork: CUNWIND_TEST_BIG_FORK
        }
    }

    /// Whether it needs the files.
    var movesFiles: Bool {
        switch self {
        case .read, .write, .copyFileRange: true
        case .munmap, .fork: false
        }
    }

    var length: Int {
        switch self {
        case .read, .write, .copyFileRange: KernelCallFiles.length
        // Of the page of zeros: written pages that take as long to unmap take four seconds to write.
        case .munmap, .fork: 32 << 30
        }
    }

    /// Returns the memory for one call, and brings both files to their beginning.
    func prepare(_ files: KernelCallFiles?) -> UnsafeMutableRawPointer? {
        files?.rewind()
        switch self {
        case .read, .copyFileRange: return cunwind_test_map_small_pages(length, false)
        case .write, .munmap, .fork: return cunwind_test_map_small_pages(length, true)
        }
    }

    func isWhole(_ result: Int) -> Bool {
        switch self {
        case .read, .write, .copyFileRange: result == length
        case .munmap: result == 0
        case .fork: result > 0
        }
    }
}

/// Two files without a name, one of them with bytes in the page cache.
final class KernelCallFiles: Sendable {
    /// Written at 6 GB a second, the fastest seen, it takes longer than a stall has to.
    static let length = 900 << 20

    let source: Int32
    let sink: Int32

    init() throws {
        // They are gone with the last descriptor, at the end of the process.
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        source = open(directory.path + "/catalogue.bin", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        sink = open(directory.path + "/copy.bin", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(source >= 0 && sink >= 0)
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for _ in 0..<(Self.length / block.count) { try #require(write(source, block, block.count) == block.count) }
    }

    deinit {
        close(source)
        close(sink)
    }

    func rewind() {
        ftruncate(sink, 0)
        lseek(source, 0, SEEK_SET)
        lseek(sink, 0, SEEK_SET)
    }
}
