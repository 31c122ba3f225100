// A configuration for production. The blocks here are in the article "Running in production".

import Foundation
import Logging
import StallWatch

func configure(logger: Logger) throws -> StallMonitor {
    var configuration = StallMonitor.Configuration(
        threshold: .milliseconds(500),
        reports: .directory("/var/lib/notes/stalls"),
        metadata: ["version": "1.4.2"],
        logger: logger
    )
    configuration.sinks = [.ndjson(path: "/var/log/notes/stalls.ndjson")]
    configuration.pathStyle = .fileNames
    configuration.redact = { report in report.process.hostname = "" }
    configuration.statisticsPath = "/var/lib/notes/stalls.statistics.json"
    configuration.escalation = .abort(after: 120)
    configuration.health = HealthOutput(path: "/run/notes/health")
    configuration.terminationLog = "/dev/termination-log"
    configuration.control = .socket(directory: "/run/notes")
    return try StallMonitor(configuration)
}
