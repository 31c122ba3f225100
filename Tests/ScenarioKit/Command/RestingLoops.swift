#if NIO
    import Dispatch
    import Foundation
    import NIOCore
    import NIOPosix
    import StallWatch
    import Synchronization

    /// Event loops and queues without work, some of which stall on request.
    final class RestingLoops: Sendable {
        private let group = MultiThreadedEventLoopGroup(numberOfThreads: 4)
        private let queues = (0..<10).map { DispatchQueue(label: "queue-\($0)") }
        private let injected = Mutex<[Duration]>([])
        private let requests = DispatchGroup()

        init(watchedBy monitor: StallMonitor) throws {
            try monitor.watch(.eventLoops(of: group, label: "nio"))
            for queue in queues { try monitor.watch(.queue(queue, label: queue.label)) }
            try monitor.watch(.cooperativePool())
        }

        /// Reads requests until standard input ends, and returns the durations of the stalls, once all are over.
        func stalls(of duration: Duration) async -> [Duration] {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { [self] in
                    var byte: UInt8 = 0
                    while read(STDIN_FILENO, &byte, 1) > 0 { stall(byte, for: duration) }
                    requests.notify(queue: .global()) { continuation.resume() }
                }
            }
            return injected.withLock { $0 }
        }

        private func stall(_ request: UInt8, for duration: Duration) {
            requests.enter()
            let stall = { @Sendable [self] in
                let time = DrivenLoop.time { sleepTooLong(for: duration) }
                injected.withLock { $0.append(time) }
                requests.leave()
            }
            switch request {
            case UInt8(ascii: "q"): queues[0].async(execute: stall)
            case UInt8(ascii: "n"): group.next().execute(stall)
            // A thread that nothing follows, with the program's name, which begins like those of the monitor's threads.
            case UInt8(ascii: "t"):
                Thread.detachNewThread { [queues] in
                    for _ in 0..<3 {
                        sleepTooLong(for: duration)
                        queues[1].sync { sleepTooLong(for: duration) }
                    }
                    sleepTooLong(for: duration)
                    queues[1].sync(execute: stall)
                }
            default: requests.leave()
            }
        }
    }
#endif
