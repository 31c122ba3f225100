import CoreFoundation
import Foundation
import Glibc
import StallWatch
import Synchronization

/// An app with a control socket that is stuck in one way until it is killed.
enum ControlledApp {
    private static let workingTurns = 100
    private enum Kind: String {
        /// The main thread and another thread wait for each other.
        case deadlock
        /// Every thread of Swift's task pool sleeps.
        case pool
        case spin
        case wait
        /// The main run loop is busy, and stalls about once a second.
        case busy
        /// The process has a gigabyte of memory, which the main run loop writes all the time.
        case large
        /// The monitor is paused, or was stopped.
        case paused, stopped
        /// The main run loop does the same work in each run, and then prints a line.
        case work
    }

    static func run(directory: String, kind: String) throws {
        guard let kind = Kind(rawValue: kind) else { exit(64) }
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(100), outputs: [])
        configuration.control = .socket(directory: directory)
        if kind == .work { configuration.outputs = [.directory(directory + "/reports")] }
        let memory = kind == .large ? LargeMemory() : nil
        if memory != nil {
            // Reading debug information costs page faults, too.
            configuration.symbols.lookup = .none
            tell("F \(LargeMemory.minorFaults)")
        }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.main)
        try monitor.watch(.cooperativePool(), isServed: true)
        try monitor.start()
        switch kind {
        case .deadlock: Deadlock.enter()
        case .pool: starveThePool()
        case .spin: stallOnce { spinForTheControlSocket() }
        case .wait: runIdleLoop()
        case .busy: runBusyLoop()
        case .large: memory?.writeForEver()
        case .paused: monitor.withMonitoringPaused { runIdleLoop() }
        case .stopped:
            monitor.stop()
            runIdleLoop()
        case .work: runWorkingLoop()
        }
        withExtendedLifetime(monitor) {}
    }

    private static func starveThePool() {
        for _ in 0..<64 { Task.detached { sleepOnThePool() } }
        runIdleLoop()
    }

    /// Runs the main run loop: 20 ms of work in each 50 ms, and now and then a quarter of a second of sleep.
    private static func runBusyLoop() {
        let count = Mutex(0)
        let timer = Timer(timeInterval: 0.05, repeats: true) { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { tell("B \(now())") }
            drawTheNotes()
            if number % 20 == 0 { saveTheNotes() }
        }
        RunLoop.main.add(timer, forMode: .default)
        CFRunLoopRun()
    }

    /// Runs the main run loop: 100 turns, of which each tenth computes and the others sleep.
    private static func runWorkingLoop() {
        let count = Mutex(0)
        let timer = Timer(timeInterval: 0.02, repeats: true) { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number <= workingTurns else { return }
            if number % 10 == 0 { addTheNotes() } else { saveTheNotes() }
            if number == workingTurns { tell("done") }
        }
        RunLoop.main.add(timer, forMode: .default)
        CFRunLoopRun()
    }

    /// Runs the main run loop, which has nothing to do but to print a line in its first turn.
    private static func runIdleLoop() {
        // From this line on the loop runs.
        let first = Timer(timeInterval: 0.05, repeats: false) { _ in tell("B \(now())") }
        RunLoop.main.add(first, forMode: .default)
        let timer = Timer(timeInterval: 3_600, repeats: true) { _ in }
        RunLoop.main.add(timer, forMode: .default)
        CFRunLoopRun()
    }
}

private struct LargeMemory {
    private static let bytes = 1 << 30
    private static let pageBytes = 4_096
    private let start: UnsafeMutableRawPointer

    init() {
        guard let start = mmap(nil, Self.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            start != MAP_FAILED
        else { exit(71) }
        self.start = start
        // A copy of a huge page would be one fault.
        madvise(start, Self.bytes, MADV_NOHUGEPAGE)
        write()
    }

    /// The page faults of this process without reads from a disk.
    static var minorFaults: Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_minflt
    }

    /// Writes each page: where another process shares it, that is a fault.
    private func write() {
        for offset in stride(from: 0, to: Self.bytes, by: Self.pageBytes) {
            start.storeBytes(of: UInt8(truncatingIfNeeded: offset), toByteOffset: offset, as: UInt8.self)
        }
    }

    func writeForEver() {
        // Right: the main thread alone uses the memory.
        nonisolated(unsafe) let memory = self
        let timer = Timer(timeInterval: 0.1, repeats: true) { _ in memory.write() }
        RunLoop.main.add(timer, forMode: .default)
        let first = Timer(timeInterval: 0.05, repeats: false) { _ in tell("B \(now())") }
        RunLoop.main.add(first, forMode: .default)
        CFRunLoopRun()
    }
}

@inline(never)
private func sleepOnThePool() {
    let left = sleep(600)
    withExtendedLifetime(left) {}
}

@inline(never)
private func spinForTheControlSocket() {
    let end = now() + 600_000_000_000
    while now() < end {}
}

@inline(never)
private func drawTheNotes() {
    let end = now() + 20_000_000
    while now() < end {}
}

/// Computes for some 200 ms in a release build: by a count, so that it is the same work in each run.
@inline(never)
private func addTheNotes() {
    var (sum, left): (UInt64, Int) = (1, 150_000_000)
    while left > 0 {
        sum = sum &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        left &-= 1
    }
    withExtendedLifetime(String(sum)) {}
}

@inline(never)
private func saveTheNotes() {
    let result = usleep(250_000)
    withExtendedLifetime(result) {}
}
