import CoreFoundation
import CUnwindTestSupport
import Foundation
import Testing
import TestSupport

@testable import StallWatch
@testable import stallwatch_scenarios

/// The life of a monitor on a thread's run loop: it leaves nothing behind, in whatever order monitor and thread end.
@Suite(.serialized) struct MonitorLifeTests {
    private func monitor() throws -> StallMonitor {
        try StallMonitor(.init(threshold: .milliseconds(100), outputs: []))
    }

    /// Returns the number of a run loop's observers, parsed from its description because there is no function for it.
    private func observers(of loop: DrivenLoop) -> Int {
        guard let description = CFCopyDescription(loop.runLoop) else { return 0 }
        var text = [CChar](repeating: 0, count: 1_000_000)
        guard CFStringGetCString(description, &text, text.count, CFStringBuiltInEncodings.UTF8.rawValue) else {
            return 0
        }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            .components(separatedBy: "<CFRunLoopObserver ").count - 1
    }

    private func entries(of directory: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: directory).count
    }

    @Test func aHundredMonitorsLeaveNothingBehind() async throws {
        let thread = await LoopThread.start("monitored", LoopThread.runOnce)
        let timer = BusyTimer(on: thread.driven)
        func cycle() throws {
            let monitor = try monitor()
            try monitor.watch(.runLoop(thread.runLoop, label: "monitored"))
            try monitor.start()
            monitor.stop()
        }
        // The first cycle opens everything that the process keeps open. Nothing awaits until the end: each thread that watches
        // has a run loop of its own from then on, with three descriptors.
        for _ in 0..<10 { try cycle() }
        usleep(100_000)
        let threads = try entries(of: "/proc/self/task")
        let files = try entries(of: "/proc/self/fd")
        let observed = observers(of: thread.driven)
        for _ in 0..<100 { try cycle() }
        #expect(eventually { (try? entries(of: "/proc/self/task")).map { $0 <= threads + 2 } ?? false })
        #expect(eventually { (try? entries(of: "/proc/self/fd")).map { $0 <= files + 2 } ?? false })
        #expect(eventually { observers(of: thread.driven) <= observed })
        timer.stop()
        await thread.stop()
    }

    @Test func theDescriptionShowsTheObservers() async throws {
        let thread = await LoopThread.start("monitored", LoopThread.runOnce)
        let before = observers(of: thread.driven)
        let monitor = try monitor()
        try monitor.watch(.runLoop(thread.runLoop, label: "monitored"))
        #expect(eventually { observers(of: thread.driven) > before })
        monitor.stop()
        #expect(eventually { observers(of: thread.driven) == before })
        await thread.stop()
    }

    /// Weak references to objects that must not be kept alive.
    private struct Remains {
        weak var thread: LoopThread?
        weak var monitor: StallMonitor?
        weak var recorder: TurnRecorder?
        weak var source: RunLoopSource?
    }

    private func live(stoppingThreadFirst: Bool) async throws -> Remains {
        let thread = await LoopThread.start("resident", LoopThread.runBefore)
        let monitor = try monitor()
        try monitor.watch(.runLoop(thread.runLoop, label: "resident"))
        try monitor.start()
        // Create a second loop monitor directly, because those of a StallMonitor are private.
        let alarm = WatchdogAlarm()
        let inner = try WatchedLoop.runLoop(thread.runLoop, label: "inner").makeMonitors(
            threshold: 100_000_000, alarm: alarm
        )
        inner[0].source.settle(until: endOfPatience)
        for _ in 0..<10 { _ = await thread.driven.block {} }
        _ = await thread.driven.source0 { sleepTooLong(for: .milliseconds(250)) }
        // A turn may run several blocks.
        #expect(inner[0].recorder.snapshot().number > 1)
        if stoppingThreadFirst { await thread.stop() }
        monitor.stop()
        inner[0].source.remove()
        if !stoppingThreadFirst {
            _ = await thread.driven.block {}
            await thread.stop()
        }
        #expect(monitor.statistics.stalls == 1)
        return Remains(
            thread: thread, monitor: monitor, recorder: inner[0].recorder,
            source: try #require(inner[0].source as? RunLoopSource)
        )
    }

    @Test(arguments: [true, false]) func aResidentThreadLeavesNothingBehind(stoppingThreadFirst: Bool) async throws {
        let remains = try await live(stoppingThreadFirst: stoppingThreadFirst)
        // The thread releases its last references when it ends.
        for _ in 0..<30_000 where remains.thread != nil || remains.source != nil {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(remains.thread == nil)
        #expect(remains.monitor == nil)
        #expect(remains.recorder == nil)
        #expect(remains.source == nil)
    }

    @Test func hundredsOfLoopsAreWatchedAtOnce() async throws {
        let monitor = try monitor()
        try monitor.start()
        var threads: [LoopThread] = []
        for index in 0..<300 {
            let thread = await LoopThread.start("loop-\(index)", LoopThread.runOnce)
            try monitor.watch(.runLoop(thread.runLoop, label: "loop-\(index)"))
            threads.append(thread)
        }
        for index in [7, 150, 299] { _ = await threads[index].driven.timer { sleepTooLong(for: .milliseconds(250)) } }
        for thread in threads { _ = await thread.driven.block {} }
        for thread in threads { await thread.stop() }
        monitor.stop()
        let loops = monitor.statistics.loops
        #expect(Set(loops.filter { $0.stalls > 0 }.map(\.label)).isSuperset(of: ["loop-150", "loop-299", "loop-7"]))
        #expect(loops.count == 300 && loops.allSatisfy { $0.turns > 0 })
    }

    @Test func aForkedChildHasNoMonitorAndDoesNotHang() async throws {
        let thread = await LoopThread.start("forking", LoopThread.runOnce)
        let monitor = try monitor()
        try monitor.watch(.runLoop(thread.runLoop, label: "forking"))
        try monitor.start()
        forkedMonitor = monitor
        defer { forkedMonitor = nil }
        let threads = Collected<Int32>()
        for _ in 0..<10 {
            _ = await thread.driven.block {
                let count = cunwind_test_fork {
                    turnOnce()
                    forkedMonitor?.stop()
                }
                threads.add(count)
            }
        }
        #expect(threads.all == Array(repeating: 1, count: 10))
        await thread.stop()
        monitor.stop()
    }

    /// Compares what the next program inherits through execve(2): threads, descriptors, signals, a tracer.
    @Test func aProgramStartedByExecveInheritsNothing() throws {
        // The shell reads its own state: while it starts another program, it blocks all signals and has a pipe open.
        let script = """
            set -- /proc/$$/fd/*
            echo $#
            while read -r line; do
                case $line in Threads:*|TracerPid:*|SigBlk:*|SigIgn:*|SigCgt:*) echo "$line" ;; esac
            done </proc/$$/status
            """
        func inherited(_ watching: String) throws -> [Substring] {
            let text = try Command(
                program: try Command.product("stallwatch-test-host"), arguments: ["replace", watching, script]
            ).withThreeDescriptors.succeed()
            // Drop the host's lines about its stall, which contain times.
            return text.split(separator: "\n").filter { !$0.hasPrefix("B ") && !$0.hasPrefix("E ") }
        }
        let (bare, monitored) = try (inherited("bare"), inherited("monitored"))
        #expect(bare.count == 6)
        #expect(monitored == bare)
    }
}

/// The monitor that children stop, which have none of its threads.
///
/// `nonisolated(unsafe)`: it is set before the first child and after the last one. A child cannot use a mutex, which knows
/// threads by their ids.
nonisolated(unsafe) private var forkedMonitor: StallMonitor?

/// Runs one turn of the calling thread's loop, with its observers; the turn does not wait, because a thread of
/// libdispatch ends a wait and a forked child has none.
private func turnOnce() {
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
}
