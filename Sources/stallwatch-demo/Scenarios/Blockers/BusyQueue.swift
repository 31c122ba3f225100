import CDemo
import Dispatch
import Foundation
import Glibc

/// A serial queue that has something else to do.
struct BusyQueue: Sendable {
    let queue = DispatchQueue(label: "busy")

    /// A queue that is busy from now on for `duration`.
    static func busy(for duration: Duration) async -> BusyQueue {
        let busy = BusyQueue()
        await withCheckedContinuation { continuation in
            busy.queue.async {
                continuation.resume()
                sleepTooLong(for: duration)
            }
        }
        return busy
    }
}
