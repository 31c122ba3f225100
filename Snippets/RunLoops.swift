// Run loops of threads, and work between events: the blocks of docs/RunLoop.md, docs/causes/pool.md and docs/causes/cpu.md.
// A test runs the program: it uses them, and prints what is left.

import CoreFoundation
import Dispatch
import Foundation

func refresh() {}

/// A thread with a run loop, which runs what it is given until it is stopped or this object is released.
final class ResidentThread: @unchecked Sendable {
    // `@unchecked Sendable`: written once, and the functions of CFRunLoop that are called here take its own lock.
    private let loop: CFRunLoop?

    init(name: String) {
        let hasStarted = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var current: CFRunLoop?
        // The closure must not retain this object: the thread would keep it, and itself.
        let thread = Thread {
            // A loop without timers and sources would end at once.
            RunLoop.current.add(Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }, forMode: .default)
            current = CFRunLoopGetCurrent()
            hasStarted.signal()
            // Not RunLoop.run(), which goes on after CFRunLoopStop.
            CFRunLoopRun()
        }
        thread.name = name
        thread.start()
        hasStarted.wait()
        loop = current
    }

    deinit { stop() }

    func submit(_ work: @escaping @Sendable () -> Void) {
        CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode, work)
        CFRunLoopWakeUp(loop)
    }

    /// Ends the thread after the work that it has.
    func stop() {
        submit { CFRunLoopStop(CFRunLoopGetCurrent()) }
    }
}

/// Work that is done in pieces of a few milliseconds while the loop has nothing else to do.
@MainActor final class IdleWork {
    private var pieces: [() -> Void] = []
    private var observer: CFRunLoopObserver?

    func add(_ piece: @escaping () -> Void) {
        pieces.append(piece)
        if observer == nil { begin() }
    }

    private func begin() {
        let activity = CFRunLoopActivity.beforeWaiting.rawValue
        observer = CFRunLoopObserverCreateWithHandler(nil, activity, true, 0) { [weak self] _, _ in
            MainActor.assumeIsolated { self?.doOne() }
        }
        CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopDefaultMode)
        CFRunLoopWakeUp(CFRunLoopGetMain())
    }

    /// Does one piece, and lets the loop turn: what has come meanwhile waits for one more piece at most.
    private func doOne() {
        if !pieces.isEmpty { pieces.removeFirst()() }
        if pieces.isEmpty {
            CFRunLoopObserverInvalidate(observer)
            observer = nil
        } else {
            CFRunLoopWakeUp(CFRunLoopGetMain())
        }
    }
}

func openInTurn(_ hosts: [String], connect: @escaping @Sendable (String) -> Void) {
    let connections = ResidentThread(name: "connections")
    for host in hosts { connections.submit { connect(host) } }
}

/// Starts and stops resident threads, and returns how many threads are left when those should have ended.
func threadsLeft(after count: Int) -> Int {
    func threads() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0 }
    let before = threads()
    let work = DispatchGroup()
    for number in 0..<count {
        let thread = ResidentThread(name: "resident")
        work.enter()
        thread.submit { work.leave() }
        // Each other one is only released.
        if number.isMultiple(of: 2) { thread.stop() }
    }
    work.wait()
    // A thread ends some time after its loop.
    for _ in 0..<6_000 where threads() > before { Thread.sleep(forTimeInterval: 0.01) }
    return threads() - before
}

/// Does pieces of work while the main loop is idle, and returns how many are not done.
@MainActor func piecesLeft(of count: Int) -> Int {
    var done = 0
    let work = IdleWork()
    for _ in 0..<count { work.add { done += 1 } }
    for _ in 0..<600 where done < count { CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.1, true) }
    return count - done
}

print("\(threadsLeft(after: 500)) of 500 threads and \(piecesLeft(of: 20)) of 20 pieces are left")
