import ArgumentParser
import CoreFoundation
import Dispatch
import Foundation
import LinuxSupport
import StallWatch
import Synchronization

/// The program of the program's child: one monitor, one stall or none, and its reports.
struct HostProgram: Sendable {
    let shape: HostShape
    /// The duration of the stall; zero for none.
    let stall: Duration
    private let monitor: StallMonitor
    private let inbox = ReportInbox()

    init(_ shape: HostShape, threshold: Duration, stall: Duration, directory: String) throws {
        self.shape = shape
        self.stall = stall
        var configuration = StallMonitor.Configuration(threshold: threshold, outputs: [.all(in: directory)])
        if shape == .waiting { configuration.detection.pinnedThreshold = nil }
        monitor = try StallMonitor(configuration)
        // The same `main` in every shape, to show that it works in each.
        try monitor.watch(.main)
        try monitor.start()
    }

    @MainActor func run() async -> Never {
        if shape == .asyncMainAtOnce {
            let reports = monitor.makeReports()
            let injected = stallHere()
            await inbox.open(reports)
            await finish(injected)
        }
        // At once: after the first `await` the main thread has ended, and CoreFoundation refuses timers of its loop.
        let timer = shape == .asyncMainTimer ? OneTimer(on: CFRunLoopGetMain(), dueIn: .zero) : nil
        let begin = SuspendingClock.now
        await inbox.open(monitor.makeReports())
        await warmUp()
        switch shape {
        case .asyncMainTimer:
            await pause(max(stall, .seconds(6)))
            timer?.invalidate()
            await finish([SuspendingClock.now - begin])
        case .asyncMainQueueTimer:
            await fireQueueTimer()
            await finish([])
        default: await finish(stallHere())
        }
    }

    /// Lets a timer of the main queue fire for as long as two looks at the loop take.
    private func fireQueueTimer() async {
        let fired = Atomic(0)
        let timer = DispatchSource.makeTimerSource(queue: .main)
        timer.schedule(deadline: .now(), repeating: 0.1)
        timer.setEventHandler { fired.add(1, ordering: .relaxed) }
        timer.resume()
        await pause(.seconds(4))
        timer.cancel()
        // Without that the twin would show nothing.
        if fired.load(ordering: .relaxed) < 2 { exit(ScenariosFailure.Status.systemError.rawValue) }
    }

    func runLoop() -> Never {
        Task.detached { [self] in
            await inbox.open(monitor.makeReports())
            switch shape {
            case .nestedRunInTimer:
                await warmUp()
                _ = await MainLoop.timer { waitUntilTheChildExits(for: monitor.configuration.threshold * 3) }
                await finish([])
            case .asyncMain, .asyncMainAtOnce, .asyncMainTimer, .asyncMainQueueTimer, .dispatchMain, .runForever,
                .runBefore, .nestedRun:
                await warmUp()
                await finish(await Task { @MainActor in stallHere() }.value)
            case .busy:
                let timer = BusyTimer(on: .main)
                await endOfInput()
                timer.stop()
                await finish([])
            case .waiting, .waitingWithPool, .turning:
                let threads = try await LoopThread.startFifty(watchedBy: monitor)
                let timers = shape == .turning ? threads.map { BusyTimer(on: $0.driven, every: 0.01) } : []
                await endOfInput()
                for timer in timers { timer.stop() }
                await finish([])
            case .resting:
                #if NIO
                    let loops = try RestingLoops(watchedBy: monitor)
                    await finish(await loops.stalls(of: stall))
                #else
                    // The program was built without its event loops.
                    exit(ScenariosFailure.Status.systemError.rawValue)
                #endif
            }
        }
        switch shape {
        case .dispatchMain: Dispatch.dispatchMain()
        case .runForever, .nestedRun, .nestedRunInTimer: RunLoop.main.run()
        case .runBefore: while RunLoop.main.run(mode: .default, before: .distantFuture) {}
        default: while true { CFRunLoopRun() }
        }
        // The main run loop always has the main queue as a source, so it never ends by itself.
        exit(ScenariosFailure.Status.systemError.rawValue)
    }

    private func stallHere() -> [Duration] {
        let work = shape == .nestedRun ? waitUntilTheChildExits : sleepTooLong
        return stall > .zero ? [DrivenLoop.time { work(stall) }] : []
    }

    /// Waits for the first heartbeat: on other threads than the main actor's, only later ones count.
    private func warmUp() async {
        await pause(monitor.configuration.threshold * 2)
    }

    /// Writes the result for the parent, and ends the process.
    private func finish(_ injected: [Duration]) async -> Never {
        var reports = await inbox.reports(
            atLeast: injected.count, within: ScenarioRunner.timeout, settling: ScenarioRunner.settling
        )
        // A stop waits for names for a second only.
        _ = monitor.settle(Set(monitor.statistics.loops.map(\.label)), until: monotonicNow() &+ 30_000_000_000)
        monitor.stop()
        reports += await inbox.rest()
        let result = HostResult(
            injectedMilliseconds: injected.map(\.milliseconds), files: reports.map(\.fileName),
            suppressed: monitor.statistics.suppressed
        )
        do {
            try StandardOutput.write(String(decoding: JSONEncoder().encode(result), as: UTF8.self) + "\n")
            exit(0)
        } catch {
            exit(ScenariosFailure.Status.inputOutput.rawValue)
        }
    }
}

/// Waits in a run of the main thread's loop, in pieces of 50 ms (`Process.waitUntilExit()`).
@inline(never)
private func waitUntilTheChildExits(for duration: Duration) {
    let child = Process()
    child.executableURL = URL(fileURLWithPath: "/bin/sleep")
    child.arguments = ["\(duration.seconds)"]
    guard (try? child.run()) != nil else { return }
    child.waitUntilExit()
}

private func endOfInput() async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            continuation.resume()
        }
    }
}

/// A timer that fires repeatedly until `stop`.
///
/// `@unchecked Sendable`: CFRunLoopTimerInvalidate takes the timer's own lock.
final class BusyTimer: @unchecked Sendable {
    private let timer: CFRunLoopTimer?

    init(on loop: DrivenLoop, every interval: Double = 0.001, _ work: @escaping @Sendable () -> Void = {}) {
        timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), interval, 0, 0) { _ in work() }
        CFRunLoopAddTimer(loop.runLoop, timer, loop.mode)
    }

    func stop() {
        CFRunLoopTimerInvalidate(timer)
    }
}
