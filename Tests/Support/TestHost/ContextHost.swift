import Dispatch
import Glibc
import StallWatch

enum ContextHost {
    /// How long each stall lasts, in microseconds.
    private static let duration: UInt32 = 400_000

    static func run(_ arguments: [String]) throws {
        switch arguments[3] {
        case "pool": try starveThePool(directory: arguments[2])
        case "span": try publishSpans(directory: arguments[2], library: arguments.count > 4 ? arguments[4] : nil)
        default: exit(64)
        }
    }

    /// Blocks every thread of the task pool, each in a task with a context of its own.
    private static func starveThePool(directory: String) throws {
        let monitor = try StallMonitor(.init(threshold: .milliseconds(100), outputs: [.directory(directory)]))
        try monitor.watch(.cooperativePool(), isServed: true)
        try monitor.start()
        _ = monitor.checkCapabilities()
        for number in 0..<4 * sysconf(Int32(_SC_NPROCESSORS_ONLN)) {
            Task.detached(name: "request-\(number)") {
                StallContext.$current.withValue(StallContext("GET /\(number)", ["number": "\(number)"])) {
                    blockTheWorker(duration)
                }
            }
        }
        usleep(3 * duration)
        monitor.settle(["tasks"])
        monitor.stop()
    }

    /// Stalls the main thread once with each kind of OpenTelemetry's record; the library that has it is preloaded, or
    /// loaded here: then its thread-local storage is not allocated before its first use.
    private static func publishSpans(directory: String, library: String?) throws {
        if let library, dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nil { exit(66) }
        guard let symbol = dlsym(nil, "publish_span") else { exit(66) }
        // The type is that of the function in Tests/Support/Preload/span.c.
        let publish = unsafeBitCast(symbol, to: (@convention(c) (Int32) -> Void).self)
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), outputs: [.directory(directory)])
        configuration.repeats.reportsEveryRepeat = true
        let isSeen = DispatchSemaphore(value: 0)
        configuration.onEvent = { if case .began = $0 { isSeen.signal() } }
        let monitor = try StallMonitor(configuration)
        let probe = LoopProbe(label: "main")
        try monitor.watch(.probe(probe))
        try monitor.start()
        _ = monitor.checkCapabilities()
        for kind in Int32(0)...3 {
            for isInScope in [false, true] {
                publish(kind)
                probe.beginTurn()
                let work = { _ = isSeen.wait(timeout: .now() + 60) }
                if isInScope { withStallContext("kind \(kind)", body: work) } else { work() }
                probe.endTurn()
            }
        }
        monitor.stop()
    }
}

@inline(never)
private func blockTheWorker(_ microseconds: UInt32) {
    let left = usleep(microseconds)
    withExtendedLifetime(left) {}
}
