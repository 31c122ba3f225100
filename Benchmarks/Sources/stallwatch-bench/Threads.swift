import CoreFoundation
import Dispatch
import Foundation
import Synchronization

/// Starts a new thread.
func startThread(_ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread(body)
}

/// Threads that compute until they are stopped.
final class BusyThreads: Sendable {
    private let isStopped = Atomic(false)

    init(_ count: Int) {
        for _ in 0..<count {
            startThread { [self] in
                while !isStopped.load(ordering: .relaxed) {}
            }
        }
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }
}

/// A thread that runs its run loop, with a timer in it or with nothing to do.
final class LoopThread: Sendable {
    // Any thread may use a CFRunLoop (CFRunLoop.h); Foundation's object is only passed to a monitor.
    nonisolated(unsafe) let runLoop: RunLoop
    private nonisolated(unsafe) let core: CFRunLoop

    /// `interval`: Seconds between two turns; `nil` for a loop that waits.
    init(interval: Double?) {
        let started = DispatchSemaphore(value: 0)
        // Written before the semaphore is signalled, and read after it.
        nonisolated(unsafe) var found: (RunLoop, CFRunLoop)?
        startThread {
            // A loop without any source does not wait but returns.
            let timer = Timer(timeInterval: interval ?? 1e9, repeats: true) { _ in }
            RunLoop.current.add(timer, forMode: .default)
            found = CFRunLoopGetCurrent().map { (RunLoop.current, $0) }
            started.signal()
            CFRunLoopRun()
        }
        started.wait()
        guard let found else { preconditionFailure("a thread has a run loop") }
        (runLoop, core) = found
    }

    /// Adds an observer of all activities.
    func observe(_ body: @escaping @Sendable (CFRunLoopActivity) -> Void) {
        let observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.allActivities.rawValue, true, 0) {
            body($1)
        }
        CFRunLoopAddObserver(core, observer, kCFRunLoopDefaultMode)
    }

    func stop() { CFRunLoopStop(core) }
}

/// The CPU time and wake-ups of a thread of this process so far.
struct ThreadUse {
    var nanosecondsOnCPU = 0.0
    var wakeUps = 0.0

    /// Reads the values of the thread with this kernel id (proc(5): schedstat and status), by default of this process.
    init(of thread: Int32, in process: String = "self") {
        let directory = "/proc/\(process)/task/\(thread)/"
        let times = (try? String(contentsOfFile: directory + "schedstat", encoding: .utf8)) ?? ""
        nanosecondsOnCPU = times.split(separator: " ").first.flatMap { Double($0) } ?? 0
        let status = (try? String(contentsOfFile: directory + "status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
        wakeUps = line.flatMap { Double($0.filter(\.isNumber)) } ?? 0
    }

    /// The first thread of this process with that name.
    static func thread(named name: String) -> Int32? {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return all.compactMap { Int32($0) }.first { thread in
            (try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8)) == name + "\n"
        }
    }
}
