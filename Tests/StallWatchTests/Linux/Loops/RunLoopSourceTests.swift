import CoreFoundation
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// The run loop of a thread, whose lock the program holds from the start until ``mayGoOn``.
///
/// CFRunLoop.c retains the context of a timer that fires with this lock.
///
/// `@unchecked Sendable`: the run loop is set before ``isHeld`` is posted, and other threads only watch it.
private final class LockedLoop: @unchecked Sendable {
    private(set) var runLoop = RunLoop.main
    private let isHeld = LinuxSupport.Semaphore()
    let mayGoOn = LinuxSupport.Semaphore()
    private let retains = Atomic<Int>(0)

    /// Returns when the lock is held.
    init() {
        Thread.detachNewThread { [self] in
            runLoop = .current
            var context = CFRunLoopTimerContext(
                version: 0, info: Unmanaged.passUnretained(self).toOpaque(),
                retain: { info in
                    guard let info else { return nil }
                    Unmanaged<LockedLoop>.fromOpaque(info).takeUnretainedValue().retain()
                    return info
                },
                release: nil, copyDescription: nil)
            let timer = CFRunLoopTimerCreate(nil, CFAbsoluteTimeGetCurrent(), 0, 0, 0, { _, _ in }, &context)
            if let timer { CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode) }
            // Ends with its only timer.
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false)
        }
        isHeld.wait()
    }

    /// The first time is that of the timer's creation.
    private func retain() {
        guard retains.wrappingAdd(1, ordering: .relaxed).newValue == 2 else { return }
        isHeld.post()
        mayGoOn.wait()
    }
}

/// Whatever the program does with the lock of its run loop, nothing of the monitor waits for it.
@Suite struct RunLoopSourceTests {
    /// Whether a body returns, on a thread of its own.
    private func returns(_ body: @escaping @Sendable () throws -> Void) -> Bool {
        WorkerThread.value(until: endOfPatience) { (try? body()) != nil } ?? false
    }

    @Test func `a monitor watches a loop whose lock is held, and stops`() throws {
        let locked = LockedLoop()
        defer { locked.mayGoOn.post() }
        let monitor = try StallMonitor(.init(outputs: []))
        #expect(returns { try monitor.watch(.runLoop(locked.runLoop, label: "before")).stop() })
        #expect(returns { try monitor.start() })
        #expect(returns { try monitor.watch(.runLoop(locked.runLoop, label: "held")) })
        #expect(returns { _ = monitor.checkHealth() })
        #expect(eventually { monitor.checkHealth().loops.map(\.label) == ["held"] }, "the watchdog runs")
        #expect(returns { monitor.stop() })
    }

    private struct Remains {
        weak var recorder: TurnRecorder?
        weak var source: RunLoopSource?
    }

    private func watch(_ locked: LockedLoop) throws -> Remains {
        let watched = Mutex<[LoopMonitor]>([])
        let isDone = returns {
            let monitors = try WatchedLoop.runLoop(locked.runLoop, label: "held").makeMonitors(
                threshold: 1, alarm: WatchdogAlarm())
            for monitor in monitors { monitor.source.remove() }
            watched.withLock { $0 = monitors }
        }
        #expect(isDone)
        let monitor = try #require(watched.withLock { $0.first })
        return Remains(recorder: monitor.recorder, source: monitor.source as? RunLoopSource)
    }

    @Test func `however often a locked loop is watched, one thread waits for it`() throws {
        let locked = LockedLoop()
        defer { locked.mayGoOn.post() }
        var threads: Set<ObjectIdentifier> = []
        for _ in 0..<3 { threads.insert(ObjectIdentifier(try #require(try watch(locked).source).changes)) }
        #expect(threads.count == 1)
    }

    @Test func `observers that are added late are removed after that`() throws {
        let locked = LockedLoop()
        defer { locked.mayGoOn.post() }
        let remains = try watch(locked)
        #expect(remains.source != nil)
        locked.mayGoOn.post()
        #expect(eventually { remains.source == nil && remains.recorder == nil })
    }
}
