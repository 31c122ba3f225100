import Dispatch
import LinuxSupport

/// Finds where libdispatch keeps the queue that a thread runs, and checks it with queues that are known.
///
/// The place is in libdispatch's private memory (`__dispatch_tsd`). The next word leads to the queue around it, if one runs
/// inside another one: `struct dispatch_thread_frame_s` { queue, frame before } of queue_internal.h.
package struct QueueCalibration: Sendable, Equatable {
    /// The distance of the queue's address from the thread pointer; `nil` if the layout is another one.
    package private(set) var queue: Int64?

    package static let ofThisProcess = QueueCalibration()

    /// The most queues that run inside each other on one thread and are followed.
    static let maximumQueues = 8

    /// Calibrates, in under a millisecond, on two short-lived threads: a pool that is stuck does not matter.
    package init() {
        guard let first = WorkerThread.value(of: Self.find), let second = WorkerThread.value(of: Self.find) else {
            return
        }
        queue = ContextCalibration.common(first, second)
    }

    /// Returns the places on the calling thread that hold a queue while it runs, before a frame with the queue around it.
    private static func find() -> [Int64] {
        let (outer, inner) = (DispatchQueue(label: "stallwatch.outer"), DispatchQueue(label: "stallwatch.inner"))
        let memory = GuardedMemory()
        guard let around = memory.dispatchObject(of: outer), let within = memory.dispatchObject(of: inner),
            around != 0, within != 0
        else { return [] }
        // Nothing else uses these queues, so neither call waits.
        let places = outer.sync {
            inner.sync {
                CUnwindEngine.placesInThreadStorage(of: within).filter { place in
                    let at = CUnwindEngine.ownThreadPointer &+ UInt64(bitPattern: place)
                    return queues(at: at, memory).starts(with: [within, around])
                }
            }
        }
        let after = CUnwindEngine.placesInThreadStorage(of: within)
        return places.filter { !after.contains($0) }
    }

    /// Returns the queues that run inside each other on a thread, the innermost first, from the word at an address.
    static func queues(at address: UInt64, _ memory: any MemoryReading) -> [UInt64] {
        var queues: [UInt64] = []
        var words = memory.words(at: address, count: 2)
        while let found = words, queues.count < maximumQueues {
            if found[0] != 0 { queues.append(found[0]) }
            words = found[1] == 0 ? nil : memory.words(at: found[1], count: 2)
        }
        return queues
    }
}
