// case-queues DIR CASE
import Foundation
import StallWatch
import NIOCore
import NIOPosix
setvbuf(stdout, nil, _IOLBF, 0)
let directory = CommandLine.arguments[1], name = CommandLine.arguments[2]
func now() -> Double {
    var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return Double(t.tv_sec) * 1e3 + Double(t.tv_nsec) / 1e6
}
func truth(_ what: String, _ work: () -> Void) {
    let began = now(); work(); print("truth: \(what) \(String(format: "%.1f", now() - began)) ms")
}
var configuration = StallMonitor.Configuration(threshold: .milliseconds(250), outputs: [.directory(directory)])
configuration.repeats.reportsEveryRepeat = true
let monitor = try StallMonitor(configuration)
nonisolated(unsafe) var mark = 0
@inline(never) func spin(_ ms: Int) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(ms) * 1_000_000;
    while DispatchTime.now().uptimeNanoseconds < end { mark &+= 1 }
}
@inline(never) func compressOnTarget() { spin(700); mark += 1 }
@inline(never) func shutEverythingDown(_ group: MultiThreadedEventLoopGroup) {
    try? group.syncShutdownGracefully(); mark += 1
}
let queue = DispatchQueue(label: "com.example.store")
let target = DispatchQueue(label: "com.example.target")
let onTarget = DispatchQueue(label: "com.example.child", target: target)
let onMain = DispatchQueue(label: "com.example.onmain", target: .main)
let inactive = DispatchQueue(label: "com.example.inactive", attributes: .initiallyInactive)
let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
func finish(after seconds: Double) {
    Thread.detachNewThread {
        Thread.sleep(forTimeInterval: seconds)
        monitor.stop()
        let s = monitor.statistics
        print("statistics: stalls \(s.stalls) suppressed \(s.suppressed) failedWrites \(s.failedWrites)")
        exit(0)
    }
}
func later(_ seconds: Double, _ work: @escaping () -> Void) {
    Thread.detachNewThread {
        Thread.sleep(forTimeInterval: seconds); work()
    }
}
switch name {
case "suspended":  // healthy: the app suspends its queue for 1.5 s
    try monitor.watch(.queue(queue, label: "store")); try monitor.start(); queue.async { mark += 1 }
    later(0.5) {
        queue.suspend(); queue.async { mark += 1 }; Thread.sleep(forTimeInterval: 1.5); queue.resume()
    }; finish(after: 3)
case "target-suspended":  // healthy: the target queue is suspended
    try monitor.watch(.queue(onTarget, label: "child")); try monitor.start(); onTarget.async { mark += 1 }
    later(0.5) {
        target.suspend(); onTarget.async { mark += 1 }; Thread.sleep(forTimeInterval: 1.5); target.resume()
    }; finish(after: 3)
case "inactive":  // healthy: the queue is activated after 1.5 s
    try monitor.watch(.queue(inactive, label: "inactive")); try monitor.start(); inactive.async { mark += 1 }
    later(1.5) { inactive.activate() }; finish(after: 3)
case "target-busy":  // the target queue runs its own work for 700 ms: compressOnTarget is the culprit
    try monitor.watch(.queue(onTarget, label: "child")); try monitor.start(); onTarget.async { mark += 1 }
    later(0.5) {
        onTarget.async { mark += 1 }; target.async { truth("target busy") { compressOnTarget() } };
        onTarget.async { mark += 1 }
    }; finish(after: 2.5)
case "main-target":  // a block of a queue on the main queue
    try monitor.watch(.main); try monitor.watch(.queue(onMain, label: "onmain")); try monitor.start()
    later(0.5) { onMain.async { truth("on main") { compressOnTarget() } } }; finish(after: 2.5); RunLoop.main.run()
case "loop-shut-down":  // healthy: the event loop group is shut down while it is watched
    try monitor.watch(.eventLoops(of: group, label: "nio")); try monitor.start()
    later(0.6) {
        group.next().execute { mark += 1 }; Thread.sleep(forTimeInterval: 0.3);
        truth("shutdown") { try? group.syncShutdownGracefully() }
    }; finish(after: 4)
case "loop-shut-down-main":  // main waits 700 ms for the shutdown, which a slow task of the loop delays
    try monitor.watch(.main); try monitor.watch(.eventLoops(of: group, label: "nio")); try monitor.start()
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.5) {
        group.next().execute { compressOnTarget() }; usleep(20_000); truth("shutdown") { shutEverythingDown(group) }
    }
    finish(after: 4); RunLoop.main.run()
case "repeat-timer":  // healthy: a timer without a pause keeps the loop from waiting; each turn is short
    try monitor.watch(.main); try monitor.start()
    _ = Timer.scheduledTimer(withTimeInterval: 0, repeats: true) { _ in mark += 1 }
    finish(after: 3); RunLoop.main.run()
case "pumping":  // healthy: a long export in a timer's callback serves the loop every 10 ms
    try monitor.watch(.main); try monitor.start()
    nonisolated(unsafe) var served = 0
    _ = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in served += 1 }
    _ = Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in
        truth("export that serves the loop") {
            for _ in 0..<200 { spin(8); _ = RunLoop.main.run(mode: .default, before: Date()) }
        }; print("served \(served) timers")
    }
    finish(after: 3.5); RunLoop.main.run()
case "pumping-until":  // the same with run(until:)
    try monitor.watch(.main); try monitor.start()
    nonisolated(unsafe) var served = 0
    _ = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in served += 1 }
    _ = Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in
        truth("export that serves the loop") {
            for _ in 0..<100 { spin(15); RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.001)) }
        }; print("served \(served) timers")
    }
    finish(after: 3.5); RunLoop.main.run()
case "pumping-stalls":  // it serves the loop, but once computes for 600 ms in between
    try monitor.watch(.main); try monitor.start()
    _ = Timer.scheduledTimer(withTimeInterval: 0.5, repeats: false) { _ in
        truth("export") {
            for i in 0..<100 {
                if i == 50 { compressOnTarget() } else { spin(8) }; _ = RunLoop.main.run(mode: .default, before: Date())
            }
        }
    }
    finish(after: 3.5); RunLoop.main.run()
default: print("no such case"); exit(2)
}
dispatchMain()
