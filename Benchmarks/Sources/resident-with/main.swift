// The same program with StallWatch. Prints its resident memory once the monitor runs, and after as many stalls as
// the further arguments say: `resident-with names|lines COUNT...`.

import Foundation
import Measuring
import StallWatch

/// Stalls for 8 ms in one of 64 places: the depth is a part of the stack.
@inline(never) func stall(_ depth: Int) {
    if depth > 0 { stall(depth - 1) } else { compute() }
    // After the call, so that it is none in tail position.
    checksum &+= 1
}

@inline(never) func compute() {
    let end = now() + 8_000_000
    while now() < end { checksum &+= 1 }
}

nonisolated(unsafe) var checksum: UInt64 = 0
let arguments = CommandLine.arguments.dropFirst()
let detail = StallMonitor.Symbolication.Detail(rawValue: arguments.first ?? "") ?? .lines
let directory = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-resident-\(getpid())")

var configuration = StallMonitor.Configuration(
    threshold: .milliseconds(5), reports: .directory(directory.path), symbolication: .init(detail: detail)
)
// Each stall is named and written, as if it were the first of its kind.
configuration.reportsEveryRepeat = true
configuration.maximumReportsPerMinute = 10_000
let monitor = try StallMonitor(configuration)
try monitor.watch(.mainRunLoop)
try monitor.start()

let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
RunLoop.main.add(timer, forMode: .default)
RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
printResident("started")

var made = 0
for goal in arguments.dropFirst().compactMap({ Int($0) }) {
    while monitor.statistics.stalls < goal {
        // Twice what is asked for: something else is wrong then.
        guard made < 2 * goal else { throw CannotMeasure("\(monitor.statistics.stalls) of \(made) stalls were seen") }
        made += 1
        let depth = made % 64
        RunLoop.main.perform { stall(depth) }
        RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.002))
    }
    RunLoop.main.run(until: Date(timeIntervalSinceNow: 2))
    printResident("after \(goal)")
}
monitor.stop()
try FileManager.default.removeItem(at: directory)
