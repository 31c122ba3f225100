// The first steps. The blocks here are those of the article "Getting started" and of the README.

import StallWatch

func start() async throws {
    let monitor = try StallMonitor(.init(threshold: .milliseconds(250), reports: .directory("stalls")))
    try monitor.watch(.main)
    try monitor.start()
    for await report in monitor.reports { print(report.summary) }  // optional
}
