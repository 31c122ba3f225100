// The program with StallWatch: `resident-with names|lines COUNT...`.

import Foundation
import Measuring
import StallWatch

let program = StallingProgram()
var configuration = StallMonitor.Configuration(
    threshold: .milliseconds(5), reports: .directory(program.directory.path),
    symbolication: .init(detail: StallMonitor.Symbolication.Detail(rawValue: program.word) ?? .lines)
)
// Every stall is symbolicated and written, without suppression of repeats.
configuration.reportsEveryRepeat = true
configuration.maximumReportsPerMinute = 10_000
let monitor = try StallMonitor(configuration)
try monitor.watch(.mainRunLoop)
try monitor.start()
try program.run { _ in monitor.statistics.stalls }
monitor.stop()
try program.finish()
