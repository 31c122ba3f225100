import GLibLoop
import StallWatch

// Watches the GLib loop of GLibLoop and prints its reports. The argument is the directory for the report files.
let directory = CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : "stalls"
let probe = LoopProbe(label: "glib")

var configuration = StallMonitor.Configuration(threshold: .milliseconds(100), outputs: [.directory(directory)])
configuration.onEvent = { if case .ended(let report) = $0 { print(report.summary) } }
let monitor = try StallMonitor(configuration)
try monitor.watch(.probe(probe))
try monitor.start()
glib_loop_run(probe.handle)
monitor.stop()
