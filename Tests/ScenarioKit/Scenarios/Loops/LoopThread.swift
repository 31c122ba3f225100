import CoreFoundation
import Dispatch
import Foundation
import StallWatch
import Synchronization

/// A thread that runs its own run loop, in one of the ways that apps use, until `stop`.
///
/// `@unchecked Sendable`: other threads call only functions of the run loop that take its own lock. The source is written
/// before the object is shared, and used only on the loop's thread after that.
final class LoopThread: @unchecked Sendable {
    /// Runs the calling thread's loop until it is stopped.
    typealias Style = @Sendable (LoopThread) -> Void

    let runLoop: RunLoop
    let driven: DrivenLoop
    /// A source that keeps the loop from ending.
    private var keepAlive: Source0?
    private let stopping = Atomic<Bool>(false)
    private let ended = Atomic<Bool>(false)

    private init() {
        runLoop = RunLoop.current
        driven = DrivenLoop(runLoop: CFRunLoopGetCurrent())
    }

    /// Starts a named thread that runs its loop in `style`, in `modes` beside the common ones.
    static func start(_ name: String, modes: [String] = [], _ style: @escaping Style) async -> LoopThread {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                Thread.current.name = name
                let thread = LoopThread()
                let keepAlive = Source0(on: thread.driven.runLoop) { _ in }
                for mode in modes { keepAlive.add(to: thread.driven.inMode(mode)) }
                thread.keepAlive = keepAlive
                continuation.resume(returning: thread)
                style(thread)
                thread.endKeepAlive()
                thread.ended.store(true, ordering: .releasing)
            }
        }
    }

    /// Starts fifty threads, `loop-0` to `loop-49`, and watches their loops.
    static func startFifty(watchedBy monitor: StallMonitor) async throws -> [LoopThread] {
        var threads: [LoopThread] = []
        for index in 0..<50 {
            let thread = await start("loop-\(index)", runOnce)
            try monitor.watch(.runLoop(thread.runLoop, label: "loop-\(index)"))
            threads.append(thread)
        }
        return threads
    }

    var isStopping: Bool { stopping.load(ordering: .acquiring) }

    /// Ends the loop, and returns once it has ended.
    func stop() async {
        stopping.store(true, ordering: .releasing)
        // A loop that has already seen the flag never runs the block and keeps it, so the block must not retain this object.
        driven.perform { [weak self] in
            // RunLoop.run() continues while there is a source.
            self?.endKeepAlive()
            CFRunLoopStop(CFRunLoopGetCurrent())
        }
        while !ended.load(ordering: .acquiring) { await pause(.milliseconds(2)) }
    }

    private func endKeepAlive() {
        keepAlive?.invalidate()
        keepAlive = nil
    }
}

extension ScenarioContext {
    /// Watches the loop of a new thread while `body` runs, and ends the thread; the loop runs in `style`, in `modes`
    /// beside the common ones, and is watched as `loop` says.
    func withLoop<Result: Sendable>(
        _ label: String, modes: [String] = [], _ style: @escaping LoopThread.Style = LoopThread.runOnce,
        watched loop: ((RunLoop) -> WatchedLoop)? = nil, threshold: Duration? = nil,
        saturationThreshold: Duration? = .seconds(10), modalModes: Set<String> = [],
        _ body: (DrivenLoop) async throws -> Result
    ) async throws -> Result {
        let thread = await LoopThread.start(label, modes: modes, style)
        try await watch(
            loop?(thread.runLoop) ?? .runLoop(thread.runLoop, label: label), threshold: threshold,
            saturationThreshold: saturationThreshold, modalModes: modalModes)
        let result = try await body(thread.driven)
        await thread.stop()
        return result
    }
}

extension LoopThread {
    static let runForever: Style = { _ in RunLoop.current.run() }

    /// `run(until:)` for 50 ms in a `while`.
    static let runUntil: Style = { thread in
        while !thread.isStopping { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.05)) }
    }

    /// `run(mode:before:)` in a `while`: it returns after every source.
    static let runBefore: Style = { thread in
        while !thread.isStopping { _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.5)) }
    }

    /// `CFRunLoopRunInMode` in a `while`: it returns after every source, or after 50 ms.
    static let runInMode: Style = { thread in
        while !thread.isStopping { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, true) }
    }

    static let runOnce: Style = { thread in
        while !thread.isStopping { CFRunLoopRun() }
    }
}

extension DispatchQueue {
    func time(_ work: @escaping @Sendable () -> Void) async -> Duration {
        await withCheckedContinuation { continuation in
            async { continuation.resume(returning: DrivenLoop.time(work)) }
        }
    }

    /// Submits `count` blocks to a serial queue before the first one runs, and returns how long all took.
    ///
    /// Together they take `duration`. The first half calls one function, the second half another.
    func burst(_ count: Int, for duration: Duration) async -> Duration {
        await withCheckedContinuation { continuation in
            async { [self] in
                let begin = SuspendingClock.now
                let each = duration / count
                for index in 0..<count {
                    async {
                        if index < count / 2 { sleepTooLong(for: each) } else { spinTheCPU(for: each) }
                        if index == count - 1 { continuation.resume(returning: SuspendingClock.now - begin) }
                    }
                }
            }
        }
    }
}
