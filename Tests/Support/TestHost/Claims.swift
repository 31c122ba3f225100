import CoreFoundation
import Foundation
import Glibc
import StallWatch

/// Prints the capabilities of a monitor, and stalls twice, so that the reports can be compared with them.
enum Claims {
    /// The threshold of the monitor.
    static let threshold = Duration.milliseconds(50)

    /// Prints the capabilities in one line, sleeps for 400 ms and computes for 400 ms.
    static func run(directory: String) throws {
        var configuration = StallMonitor.Configuration(threshold: threshold, reports: .directory(directory))
        configuration.symbolication.timeLimit = .seconds(60)
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.mainRunLoop)
        try monitor.start()
        let text = String(decoding: monitor.capabilities.jsonData(), as: UTF8.self)
        tell(text.split(separator: "\n").joined())
        stallOnce(sleepHere)
        stallOnce(computeHere)
        monitor.stop()
    }

    @inline(never) private static func sleepHere() { usleep(400_000) }

    @inline(never) private static func computeHere() {
        let end = now() + 400_000_000
        while now() < end {}
    }
}
