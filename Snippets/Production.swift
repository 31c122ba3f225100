// A configuration for production. The blocks here are in the article "Running in production".

import Foundation
import Logging
import StallWatch

func configure(logger: Logger) throws -> StallMonitor {
    var configuration = StallMonitor.Configuration(
        threshold: .milliseconds(500),
        outputs: [
            .directory("/var/lib/notes/stalls"),
            .ndjson(path: "/var/log/notes/stalls.ndjson"),
            .log(logger),
            .statistics("/var/lib/notes/stalls.statistics.json"),
            .terminationLog("/dev/termination-log"),
        ])
    configuration.privacy.metadata = ["version": "1.4.2"]
    configuration.privacy.pathStyle = .fileNames
    configuration.privacy.redact = { report in report.process.hostname = "" }
    configuration.escalation = .abort(afterThresholds: 120)
    configuration.health = .init(path: "/run/notes/health")
    configuration.control = .socket(directory: "/run/notes")
    return try StallMonitor(configuration)
}
