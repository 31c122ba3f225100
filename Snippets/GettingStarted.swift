// The first steps. The block here is in the README and in the article "Getting started".

import Foundation
import StallWatch

let monitor = try StallMonitor(.init(threshold: .milliseconds(250), outputs: [.directory("stalls")]))
try monitor.watch(.main)
try monitor.start()
Task { for await report in monitor.makeReports() { print(report.summary) } }  // optional

// The program's own main loop.
RunLoop.main.run()
