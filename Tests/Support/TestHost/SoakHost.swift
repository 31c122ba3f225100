import CStalls
import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

/// A program that is hard to watch, until standard input ends: 500 loops on threads with stacks of 64 KiB, real-time threads
/// that come and go, a working directory that changes at random, and calls into a file system that hangs.
///
/// All its paths are relative, except that of a library on that file system: `reports`, and `NAME.statistics` and
/// `NAME.ledger`, which has the truth that `Tests/Programs/hostile-soak.py` judges the reports by.
struct SoakHost {
    private static let (runLoops, queues, probes) = (20, 79, 400)
    private static let actors = 2
    /// Each loop turns twice a second.
    private static let groups = 10
    private static let turnPause: UInt32 = 50_000

    private let monitor: StallMonitor
    private let ledger: SoakLedger
    private let library: HangingLibrary
    private let folders: [String]
    private let loops: [SoakLoop]
    private static let isStopping = Atomic(false)

    /// The run's name, the library and the folders to change to; called on the main thread.
    init(_ arguments: ArraySlice<String>) throws {
        let words = Array(arguments)
        guard words.count > 2, let ledger = SoakLedger("\(words[0]).ledger"), let library = HangingLibrary(words[1])
        else { exit(64) }
        (self.ledger, self.library, folders) = (ledger, library, Array(words[2...]))
        guard stalls_set_default_stack(SmallThread.stackBytes) else { exit(71) }
        var loops = [SoakLoop(SoakRunLoop(), label: "main")]
        loops += (0..<Self.runLoops).map { SoakLoop(SoakRunLoop.start(), label: "run loop \($0)") }
        loops += (0..<Self.queues).map { SoakLoop(queue: "queue \($0)") }
        loops += (0..<Self.probes).map { SoakLoop(probe: "probe \($0)") }
        self.loops = loops
        var configuration = StallMonitor.Configuration(outputs: [
            .directory("reports", quota: .init(reports: 1_000_000, bytes: 1 << 40)),
            .statistics("\(words[0]).statistics"),
        ])
        configuration.repeats = .init(maximumReportsPerMinute: 10_000, reportsEveryRepeat: true)
        configuration.privacy.metadata["run"] = words[0]
        monitor = try StallMonitor(configuration)
        for loop in loops { try monitor.watch(loop.watched) }
    }

    func run() throws -> Never {
        try monitor.start()
        tell("runs")
        SmallThread.start { noteGaps() }
        SmallThread.start { turn() }
        SmallThread.start { changeDirectory() }
        SmallThread.start { burst() }
        let acting = DispatchGroup()
        for _ in 0..<Self.actors {
            acting.enter()
            SmallThread.start {
                while !Self.isStopping.load(ordering: .relaxed) { stall() }
                acting.leave()
            }
        }
        SmallThread.start {
            while readLine() != nil {}
            Self.isStopping.store(true, ordering: .relaxed)
            acting.wait()
            // The last turn ends after its work.
            sleep(1)
            monitor.stop()
            tell("stopped")
            exit(0)
        }
        RunLoop.main.run()
        exit(70)
    }

    /// Stalls one loop in one way.
    private func stall() {
        usleep(.random(in: 500_000...2_500_000))
        guard let loop = loops.randomElement(), let stall = SoakStall.allCases.randomElement() else { return }
        let milliseconds = stall == .brief ? Int.random(in: 100...180) : .random(in: 400...1_500)
        let isOver = DispatchSemaphore(value: 0)
        loop.perform(ledger) { began in
            ledger.write("{\"loop\":\"\(loop.watched.label)\",\"stall\":\"\(stall)\",\"began\":\(began)}")
            stall.block(milliseconds, library)
            isOver.signal()
        }
        isOver.wait()
    }

    private func turn() {
        var number = 0
        while true {
            usleep(Self.turnPause)
            for index in stride(from: number % Self.groups, to: loops.count, by: Self.groups) {
                loops[index].perform(ledger) { _ in }
            }
            number += 1
        }
    }

    private func changeDirectory() {
        while let folder = folders.randomElement() {
            usleep(.random(in: 20_000...200_000))
            chdir(folder)
        }
    }

    /// Watches a loop on a real-time thread, lets it turn once, and ends both.
    private func burst() {
        let isOver = DispatchSemaphore(value: 0)
        while true {
            usleep(.random(in: 100_000...400_000))
            SmallThread.start(isRealTime: true) {
                let (probe, submitted) = (LoopProbe(label: "burst"), SoakLedger.time())
                do {
                    let watch = try monitor.watch(.probe(probe))
                    probe.beginTurn()
                    ledger.time("burst", since: submitted) { _ in SoakStall.spin.block(.random(in: 5...15), library) }
                    probe.endTurn()
                    watch.stop()
                } catch {
                    // The monitor has been stopped, or a fault that the log shows.
                    if !Self.isStopping.load(ordering: .relaxed) { tell("FAILED: \(error)") }
                }
                isOver.signal()
            }
            isOver.wait()
        }
    }

    /// Notes when the program got no CPU, as the monitor does not report what stalls then.
    private func noteGaps() {
        var last = SoakLedger.time()
        while true {
            usleep(20_000)
            let time = SoakLedger.time()
            if time &- last >= SoakLedger.leastGap { ledger.write("{\"gapSince\":\(last),\"ended\":\(time)}") }
            last = time
        }
    }
}

/// The truth: a line of JSON for each planned stall when it begins, for each long turn, and for each gap.
struct SoakLedger: Sendable {
    /// In microseconds, as all its times: less than the threshold.
    private static let leastTurn: UInt64 = 150_000
    static let leastGap: UInt64 = 100_000

    private let descriptor: Int32

    init?(_ path: String) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
    }

    /// Since 1970, as times in reports.
    static func time() -> UInt64 { UInt64(Date().timeIntervalSince1970 * 1_000_000) }

    func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // One call, so that lines of several threads do not mix.
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { return tell("FAILED: no ledger") }
    }

    /// Times the work of a turn; one that is late counts from its submission.
    func time(_ loop: String, since submitted: UInt64, _ work: (_ began: UInt64) -> Void) {
        let began = Self.time()
        work(began)
        let ended = Self.time()
        guard ended &- submitted >= Self.leastTurn else { return }
        write("{\"loop\":\"\(loop)\",\"submitted\":\(submitted),\"began\":\(began),\"ended\":\(ended)}")
    }
}

/// The ways to stall.
private enum SoakStall: CaseIterable {
    case sleep, spin, lock, semaphore
    /// Calls a function of the library, whose code may have to be read from the file system that hangs.
    case library
    /// Reads the file, which is a stall only while its file system hangs.
    case file
    /// Shorter than the threshold: no stall.
    case brief

    func block(_ milliseconds: Int, _ library: HangingLibrary) {
        switch self {
        case .sleep, .brief: usleep(UInt32(milliseconds) * 1_000)
        case .spin: spinInSoak(milliseconds)
        case .lock: waitForTheLockInSoak(milliseconds)
        case .semaphore: _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(milliseconds))
        case .library: library.nap(Int32(milliseconds))
        case .file: readInSoak(library.path)
        }
    }
}

@inline(never)
private func spinInSoak(_ milliseconds: Int) {
    let end = now() + UInt64(milliseconds) * 1_000_000
    while now() < end {}
}

@inline(never)
private func waitForTheLockInSoak(_ milliseconds: Int) {
    let (lock, isHeld) = (NSLock(), DispatchSemaphore(value: 0))
    SmallThread.start {
        lock.lock()
        isHeld.signal()
        usleep(UInt32(milliseconds) * 1_000)
        lock.unlock()
    }
    isHeld.wait()
    lock.lock()
    lock.unlock()
}

@inline(never)
private func readInSoak(_ path: String) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    var byte: UInt8 = 0
    read(file, &byte, 1)
    close(file)
}

/// A library on the file system that hangs.
private struct HangingLibrary: Sendable {
    let path: String
    let nap: @convention(c) @Sendable (Int32) -> Void

    init?(_ path: String) {
        guard let library = dlopen(path, RTLD_NOW), let symbol = dlsym(library, "nap_in_library") else { return nil }
        self.path = path
        // The library declares it as `void nap_in_library(int)`.
        nap = unsafeBitCast(symbol, to: (@convention(c) @Sendable (Int32) -> Void).self)
    }
}
