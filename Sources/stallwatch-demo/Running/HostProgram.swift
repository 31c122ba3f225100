import CoreFoundation
import Dispatch
import Foundation
import StallWatch

/// The program that a child of the demo is: one monitor, one stall (or none), and what was reported of it.
struct HostProgram: Sendable {
    let shape: HostShape
    /// How long to stall; zero for not at all.
    let stall: Duration
    private let monitor: StallMonitor
    private let inbox = ReportInbox()

    /// Makes the monitor and starts it.
    init(_ shape: HostShape, threshold: Duration, stall: Duration, directory: String) throws {
        self.shape = shape
        self.stall = stall
        monitor = try StallMonitor(.init(threshold: threshold, reports: .directory(directory)))
        // Every shape of program: that `main` just works in each of them is what is to be shown.
        try monitor.watch(.main)
        try monitor.start()
    }

    /// Runs the program on the main actor.
    ///
    /// Ends the process.
    @MainActor func run() async -> Never {
        await inbox.open(monitor.reports)
        await warmUp()
        let injected = stallHere()
        await finish(injected)
    }

    /// Runs the program on the main thread, in a loop.
    ///
    /// To be called on the main thread. Ends the process.
    func runLoop() -> Never {
        Task.detached { [self] in
            await inbox.open(monitor.reports)
            switch shape {
            case .asyncMain, .dispatchMain, .runForever, .runBefore:
                await warmUp()
                await finish(await Task { @MainActor in stallHere() }.value)
            case .busy:
                let timer = BusyTimer(on: .main)
                await endOfInput()
                timer.stop()
                await finish([])
            case .waiting, .turning:
                let threads = try await watchFifty()
                let timers = shape == .turning ? threads.map { BusyTimer(on: $0.driven, every: 0.01) } : []
                await endOfInput()
                for timer in timers { timer.stop() }
                await finish([])
            }
        }
        switch shape {
        case .dispatchMain: Dispatch.dispatchMain()
        case .runForever: RunLoop.main.run()
        case .runBefore: while RunLoop.main.run(mode: .default, before: .distantFuture) {}
        default: while true { CFRunLoopRun() }
        }
        // A main run loop always has the main queue, so it never ends for want of sources.
        exit(DemoFailure.Status.systemError.rawValue)
    }

    /// Stalls the thread that it is called on.
    private func stallHere() -> [Duration] {
        stall > .zero ? [DrivenLoop.time { sleepTooLong(for: stall) }] : []
    }

    /// A heartbeat counts only from the first one that has run.
    private func warmUp() async {
        await pause(monitor.configuration.threshold * 2)
    }

    private func watchFifty() async throws -> [LoopThread] {
        var threads: [LoopThread] = []
        for index in 0..<50 {
            let thread = await LoopThread.start("loop-\(index)", LoopThread.runOnce)
            try monitor.watch(.runLoop(thread.runLoop, label: "loop-\(index)"))
            threads.append(thread)
        }
        return threads
    }

    /// Tells the parent what came of it, and ends the process.
    private func finish(_ injected: [Duration]) async -> Never {
        var reports = await inbox.reports(
            atLeast: injected.count, within: ScenarioRunner.timeout, settling: ScenarioRunner.settling
        )
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
            exit(DemoFailure.Status.inputOutput.rawValue)
        }
    }
}

/// Waits until standard input ends.
private func endOfInput() async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            continuation.resume()
        }
    }
}

/// A timer that fires again and again, to no end.
///
/// `@unchecked Sendable`: CFRunLoopTimerInvalidate takes the timer's own lock.
final class BusyTimer: @unchecked Sendable {
    private let timer: CFRunLoopTimer?

    /// A timer that fires every `interval` seconds, and does `work`.
    init(on loop: DrivenLoop, every interval: Double = 0.001, _ work: @escaping @Sendable () -> Void = {}) {
        timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), interval, 0, 0) { _ in work() }
        CFRunLoopAddTimer(loop.runLoop, timer, loop.mode)
    }

    func stop() {
        CFRunLoopTimerInvalidate(timer)
    }
}
