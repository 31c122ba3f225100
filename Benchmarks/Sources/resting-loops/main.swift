import Dispatch
import Foundation
import NIOPosix
import StallWatch

// A program whose loops have no work: four event loops, ten queues, the task pool and the main thread.
let group = MultiThreadedEventLoopGroup(numberOfThreads: 4)
let queues = (0..<10).map { DispatchQueue(label: "queue-\($0)") }
let monitor = try StallMonitor(.init(outputs: []))
try monitor.watch(.main)
try monitor.watch(.eventLoops(of: group, label: "nio"))
try monitor.watch(.cooperativePool())
for queue in queues { try monitor.watch(.queue(queue, label: queue.label)) }
try monitor.start()
while RunLoop.main.run(mode: .default, before: .distantFuture) {}
