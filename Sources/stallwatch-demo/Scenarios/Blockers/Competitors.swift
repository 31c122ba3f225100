import Foundation
import Glibc
import Synchronization

/// Threads that occupy the first CPU, so that a thread bound to it is ready to run but gets little of it.
final class Competitors: Sendable {
    private let isOver = Atomic<Bool>(false)

    /// Starts the threads, and returns once all run.
    init(count: Int) {
        for index in 0..<count {
            NamedThread.start("rival-\(index)") { [self] ready in
                Affinity()?.pinThisThread()
                ready()
                while !isOver.load(ordering: .relaxed) {}
            }
        }
    }

    /// Runs `body` on their CPU, and then ends the threads.
    func run(_ body: () -> Void) {
        let affinity = Affinity()
        affinity?.pinThisThread()
        body()
        affinity?.restore()
        isOver.store(true, ordering: .relaxed)
    }
}

/// The CPU affinity of the calling thread: sched_setaffinity(2), which Swift's Glibc module does not export.
private struct Affinity {
    private typealias Call = @convention(c) (pid_t, Int, UnsafeMutableRawPointer) -> Int32
    private let set: Call
    private var all = [UInt64](repeating: 0, count: 16)

    init?() {
        guard let get = Self.function("sched_getaffinity"), let set = Self.function("sched_setaffinity") else {
            return nil
        }
        self.set = set
        guard get(0, all.count * 8, &all) >= 0 else { return nil }
    }

    func pinThisThread() {
        guard let word = all.firstIndex(where: { $0 != 0 }) else { return }
        var one = [UInt64](repeating: 0, count: all.count)
        one[word] = 1 << UInt64(all[word].trailingZeroBitCount)
        _ = set(0, one.count * 8, &one)
    }

    func restore() {
        var all = all
        _ = set(0, all.count * 8, &all)
    }

    private static func function(_ name: String) -> Call? {
        // Both functions have this type, except for a const in one of them.
        dlsym(nil, name).map { unsafeBitCast($0, to: Call.self) }
    }
}
