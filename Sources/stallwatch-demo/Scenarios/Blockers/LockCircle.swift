import CDemo
import Dispatch
import Foundation
import Glibc
import Synchronization

/// Locks that as many threads take in a circle: thread n has lock n and wants lock n + 1.
///
/// The stalled thread is number 0; the last one gives up after a while.
final class LockCircle: Sendable {
    private let locks: [PthreadLock]
    private let mayGoOn = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - count: The threads, with the stalled one.
    ///   - duration: After how long the last thread gives up.
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

    /// Takes the first lock, lets the other threads want what they do not get, and wants the second lock.
    func close() {
        locks[0].acquire()
        for _ in 1..<locks.count { mayGoOn.signal() }
        locks[1].acquire()
        locks[1].release()
        locks[0].release()
    }
}
