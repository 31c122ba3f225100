import CDemo
import Dispatch
import Foundation
import Glibc

/// A serial queue that runs another block.
struct BusyQueue: Sendable {
    let queue = DispatchQueue(label: "busy")

    /// A queue that is busy for `duration` from now on.
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
