import Glibc
import StallWatch

/// A crash on the main thread or on one of the monitor's threads.
enum Crash {
    private enum Place: String {
        /// The main thread of a program without a monitor.
        case bare
        /// The main thread of a program with a monitor.
        case monitored
        /// A sink of the monitor.
        case sink
    }

    static func run(_ place: String) throws {
        guard let place = Place(rawValue: place) else { exit(64) }
        forbidCoreDumps()
        if place != .bare {
            var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), reports: .none)
            configuration.sinks = place == .sink ? [.closure { _ in crash() }] : [.closure { _ in }]
            let monitor = try StallMonitor(configuration)
            try monitor.watch(.mainRunLoop)
            try monitor.start()
        }
        if place == .sink {
            stallOnce(milliseconds: 150)
            sleep(60)
        }
        // The monitor's threads wait for work by then.
        usleep(200_000)
        crash()
    }

    @inline(never) private static func crash() {
        fatalError("the test's own crash")
    }
}
