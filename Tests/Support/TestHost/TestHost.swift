import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch

/// A small app for tests: stalls its main run loop as its arguments say, and prints each stall on standard output.
///
///     stallwatch-test-host stalls DIRECTORY THRESHOLD-MS COUNT MINIMUM-MS MAXIMUM-MS
///     stallwatch-test-host seen-stall DIRECTORY MINIMUM-MS
///     stallwatch-test-host first-stall DIRECTORY
///     stallwatch-test-host can-mount MOUNT-POINT
///     stallwatch-test-host full-disk MOUNT-POINT
///     stallwatch-test-host small-files DIRECTORY
///     stallwatch-test-host replace bare|monitored SCRIPT
///     stallwatch-test-host crash bare|monitored|sink
///     stallwatch-test-host turns source0|timer COUNT bare|monitored|noisy
///     stallwatch-test-host deadlock DIRECTORY THRESHOLD-MS
///     stallwatch-test-host health DIRECTORY none|lock|spin|sleep|recover|debug [abort|call]
///     stallwatch-test-host control DIRECTORY deadlock|pool|spin|wait|busy|large|paused|stopped|work
///     stallwatch-test-host tasks DIRECTORY graph|churn|damaged|large|circle|none [COUNT]
///     stallwatch-test-host contexts DIRECTORY pool|span [LIBRARY]
///     stallwatch-test-host replace-in-stall DIRECTORY MICROSECONDS
///     stallwatch-test-host many-threads DIRECTORY
///     stallwatch-test-host drop-user DIRECTORY
///     stallwatch-test-host main-stalls DIRECTORY THRESHOLD-MS DURATION-MS FILE
///     stallwatch-test-host proofs DIRECTORY COUNT
///     stallwatch-test-host soak NAME LIBRARY FOLDER...
@main struct TestHost {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2 else { exit(64) }
        switch arguments[1] {
        case "stalls": try stalls(arguments)
        case "seen-stall": try seenStall(arguments)
        case "first-stall": try firstStall(arguments[2])
        case "can-mount": exit(FullDisk(directory: arguments[2]).mount() ? 0 : 77)
        case "full-disk": try FullDisk(directory: arguments[2]).run()
        case "small-files": try FullDisk(directory: arguments[2]).runWithSmallFiles()
        case "replace": try replace(arguments)
        case "replace-in-stall": try replaceInStall(arguments)
        case "crash": try Crash.run(arguments[2])
        case "turns": try CountedTurns(arguments.dropFirst(2)).run()
        case "deadlock": try Deadlock.run(directory: arguments[2], threshold: .milliseconds(Int(arguments[3]) ?? 50))
        case "health": try HealthHost(arguments.dropFirst(2)).run()
        case "control": try ControlledApp.run(directory: arguments[2], kind: arguments.count > 3 ? arguments[3] : "")
        case "tasks":
            try TaskHost.run(
                directory: arguments[2], kind: arguments.count > 3 ? arguments[3] : "",
                count: arguments.count > 4 ? Int(arguments[4]) ?? 0 : 0)
        case "contexts": try ContextHost.run(arguments)
        case "many-threads": try Limits.captureManyThreads(directory: arguments[2])
        case "drop-user": try Limits.dropUser(directory: arguments[2])
        case "main-stalls": try MainStalls(arguments.dropFirst(2)).run()
        case "proofs": try ProofHost(arguments.dropFirst(2)).run()
        case "soak": try SoakHost(arguments.dropFirst(2)).run()
        default: exit(64)
        }
    }

    /// Stalls `COUNT` times for random durations; prints each as `B <monotonic ns>` … `E <monotonic ns>`; then prints
    /// the number of stalls suppressed because of a debugger, if any, and the number of reported stalls.
    private static func stalls(_ arguments: [String]) throws {
        let numbers = arguments.dropFirst(3).compactMap(Int.init)
        guard numbers.count == 4 else { exit(64) }
        let monitor = try StallMonitor.ofMainRunLoop(
            .init(threshold: .milliseconds(numbers[0]), outputs: [.directory(arguments[2])]))
        for _ in 0..<numbers[1] {
            stallOnce(milliseconds: Int.random(in: numbers[2]...numbers[3]))
        }
        monitor.settle()
        monitor.stop()
        let debugged = monitor.statistics.suppressed[.debugger]
        if debugged > 0 { tell("D \(debugged)") }
        tell("S \(monitor.statistics.stalls)")
    }

    /// Stalls once over 50 ms, until the monitor blames the function that does; then prints the number of stalls.
    private static func seenStall(_ arguments: [String]) throws {
        guard arguments.count == 4, let milliseconds = Int(arguments[3]) else { exit(64) }
        let isSeen = DispatchSemaphore(value: 0)
        let monitor = try StallMonitor.ofMainRunLoop(
            .init(
                threshold: .milliseconds(50), outputs: [.directory(arguments[2])],
                onEvent: {
                    // Beside other programs a turn without work may be a stall, too.
                    if case .began(let report) = $0,
                        report.culprit?.function.contains("stallOnce(milliseconds:") == true
                    {
                        isSeen.signal()
                    }
                }))
        stallOnce(milliseconds: milliseconds, until: isSeen)
        monitor.settle()
        monitor.stop()
        tell("S \(monitor.statistics.stalls)")
    }

    /// Stalls from the start of the monitor until there is a report; then prints whether a thread still reads files.
    private static func firstStall(_ directory: String) throws {
        let monitor = try StallMonitor(.init(threshold: .milliseconds(20), outputs: [.directory(directory)]))
        try monitor.watch(.runLoop(.main, label: "main"))
        try monitor.start()
        stallOnce {
            while !names(in: directory).contains(where: { $0.hasPrefix("stall-") }) { usleep(1_000) }
            let threads = names(in: "/proc/self/task").map { "/proc/self/task/\($0)/comm" }
            let isReading = threads.contains { thread in
                (try? String(contentsOfFile: thread, encoding: .utf8)) == "stallwatch-file\n"
            }
            tell(isReading ? "R reading" : "R read")
        }
        monitor.settle()
        monitor.stop()
    }

    private static func names(in folder: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }
}

extension TestHost {
    /// Stalls once, and then replaces the process with a shell that runs `SCRIPT`.
    private static func replace(_ arguments: [String]) throws {
        guard arguments.count == 4 else { exit(64) }
        if arguments[2] == "monitored" {
            _ = try StallMonitor.ofMainRunLoop(.init(threshold: .milliseconds(50), outputs: []))
        }
        stallOnce(milliseconds: 150)
        var words: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(arguments[3]), nil]
        execv("/bin/sh", &words)
        exit(127)
    }

    /// Computes for `MICROSECONDS` over the threshold, and replaces the process with true(1) in the same turn.
    private static func replaceInStall(_ arguments: [String]) throws {
        guard arguments.count == 4, let microseconds = UInt64(arguments[3]) else { exit(64) }
        let threshold: UInt64 = 10
        // A program that a worker of libdispatch starts inherits the signals that the worker blocks.
        var signals = sigset_t()
        sigemptyset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, nil)
        _ = try StallMonitor.ofMainRunLoop(.init(threshold: .milliseconds(Int(threshold)), outputs: []))
        stallOnce {
            let end = now() + threshold * 1_000_000 + microseconds * 1_000
            while now() < end {}
            var words: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
            execv("/bin/true", &words)
        }
        exit(127)
    }
}

extension StallMonitor {
    /// Returns a monitor of the main run loop that has started, and is kept by its watchdog, which has looked once.
    static func ofMainRunLoop(_ configuration: Configuration) throws -> StallMonitor {
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.runLoop(.main, label: "main"))
        try monitor.start()
        // Beside other programs its first look may come after a short stall.
        monitor.settle([])
        return monitor
    }

    /// Waits until the stalls of these loops so far are with the outputs, with names, for which `stop()` may lack the
    /// time; no longer than the tests wait.
    func settle(_ labels: Set<String> = ["main"], seconds: UInt64 = 250) {
        _ = settle(labels, until: now() + seconds * 1_000_000_000)
    }
}

/// Runs the main run loop until a timer has called `stall` once.
func stallOnce(_ stall: @escaping @Sendable () -> Void) {
    let timer = Timer(timeInterval: 0.001, repeats: false) { _ in
        tell("B \(now())")
        stall()
        tell("E \(now())")
        CFRunLoopStop(CFRunLoopGetMain())
    }
    RunLoop.main.add(timer, forMode: .default)
    // Run one more turn, so that the monitor sees the end of the stalled turn before the next stall.
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false)
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.002, false)
}

func stallOnce(milliseconds: Int) {
    stallOnce { usleep(UInt32(milliseconds) * 1_000) }
}

/// Stalls once for so long at least, and until the signal, for a minute more at most.
func stallOnce(milliseconds: Int, until signal: DispatchSemaphore) {
    stallOnce {
        usleep(UInt32(milliseconds) * 1_000)
        _ = signal.wait(timeout: .now() + 60)
    }
}

func forbidCoreDumps() {
    var limit = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
}

/// Returns monotonic nanoseconds; the parent uses the same clock.
func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Prints one line without buffering, because the process may be killed at any time.
func tell(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    write(STDOUT_FILENO, bytes, bytes.count)
}
