import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// A cycle of locks and as many threads: thread n owns lock n and wants lock n + 1.
///
/// Thread 0 is the stalled one. The last thread gives up after some time.
final class LockCircle: Sendable {
    private let locks: [PthreadLock]
    private let mayGoOn = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - count: The number of threads, including the stalled one.
    ///   - duration: The time after which the last thread gives up.
    init(of count: Int, for duration: Duration) {
        locks = (0..<count).map { _ in PthreadLock() }
        for index in 1..<count {
            NamedThread.start("circle-\(index)") { [self] ready in
                locks[index].acquire()
                ready()
                mayGoOn.wait()
                if index < count - 1 {
                    locks[index + 1].acquire()
                    locks[index + 1].release()
                } else if locks[0].acquire(within: duration) {
                    locks[0].release()
                }
                locks[index].release()
            }
        }
    }

    /// Takes the first lock, lets the other threads wait for theirs, and waits for the second lock.
    func close() {
        locks[0].acquire()
        for _ in 1..<locks.count { mayGoOn.signal() }
        locks[1].acquire()
        locks[1].release()
        locks[0].release()
    }
}
