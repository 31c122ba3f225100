// The program with StallWatch: `resident-with names|lines COUNT...`.

import Foundation
import Measuring
import StallWatch

let program = StallingProgram()
var configuration = StallMonitor.Configuration(
    threshold: .milliseconds(5), outputs: [.directory(program.directory.path)],
    symbols: .init(lookup: program.word == "names" ? .names : .lines))
// Every stall is symbolicated and written, without suppression of repeats.
configuration.repeats.reportsEveryRepeat = true
configuration.repeats.maximumReportsPerMinute = 10_000
let monitor = try StallMonitor(configuration)
try monitor.watch(.runLoop(.main, label: "main"))
try monitor.start()
try program.run { _ in monitor.statistics.stalls }
monitor.stop()
try program.finish()
