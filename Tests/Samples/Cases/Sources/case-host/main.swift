// case-host DIR STEP...   each STEP is LIB:SYMBOL[:close], run on the main queue one after the other.
import Foundation
import StallWatch
setvbuf(stdout, nil, _IOLBF, 0)
let env = ProcessInfo.processInfo.environment
func number(_ name: String, _ other: Int) -> Int { env[name].flatMap { Int($0) } ?? other }
typealias Step = @convention(c) () -> Void
func now() -> Double {
    var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return Double(t.tv_sec) * 1e3 + Double(t.tv_nsec) / 1e6
}
let arguments = CommandLine.arguments
// Steps that begin with + are run before the monitor starts.
var steps = Array(arguments.dropFirst(2))
@inline(never) func runPlugin(_ function: Step) { function(); seen += 1 }
nonisolated(unsafe) var seen = 0
func perform(_ step: String) {
    let parts = step.split(separator: ":").map(String.init)
    guard let handle = dlopen(parts[0], RTLD_NOW | (parts.contains("global") ? RTLD_GLOBAL : 0)) else {
        print("dlopen: \(String(cString: dlerror()))"); exit(9)
    }
    guard let address = dlsym(handle, parts[1]) else { print("dlsym: \(String(cString: dlerror()))"); exit(9) }
    let function = unsafeBitCast(address, to: Step.self)
    let began = now()
    runPlugin(function)
    print("truth: \(step) \(String(format: "%.1f", now() - began)) ms, code at \(address)")
    if parts.contains("close") { print("dlclose: \(dlclose(handle))") }
}
while let first = steps.first, first.hasPrefix("+") { perform(String(first.dropFirst())); steps.removeFirst() }
var configuration = StallMonitor.Configuration(
    threshold: .milliseconds(number("BH_THRESHOLD", 250)), outputs: [.directory(arguments[1])])
configuration.repeats.reportsEveryRepeat = true
if env["BH_ALL"] != nil { configuration.detection.capturesAllThreads = true }
if let socket = env["BH_CONTROL"] { configuration.control = .socket(directory: socket) }
if let health = env["BH_HEALTH"] { configuration.health = .init(path: health, interval: .milliseconds(200)) }
let monitor = try StallMonitor(
    env["BH_BARE"] == nil ? configuration : StallMonitor.Configuration(threshold: .seconds(3600), outputs: []))
try monitor.watch(.main)
let startBegan = now()
if env["BH_BARE"] == nil { try monitor.start() }
print("pid \(getpid()) started in \(String(format: "%.1f", now() - startBegan)) ms")
let pause = Double(number("BH_PAUSE", 400)) / 1000
func next() {
    guard !steps.isEmpty else {
        DispatchQueue.main.asyncAfter(deadline: .now() + Double(number("BH_SETTLE", 700)) / 1000) {
            let stopBegan = now(); monitor.stop(); print("stop took \(String(format: "%.0f", now() - stopBegan)) ms")
            let s = monitor.statistics
            print(
                "statistics: stalls \(s.stalls) suppressed \(s.suppressed) dropped \(s.reportsDropped) lost \(s.reportsLost) recovered \(s.reportsRecovered) failedWrites \(s.failedWrites) \(s.lastWriteError.map { "\($0)" } ?? "")"
            )
            exit(0)
        }
        return
    }
    let step = steps.removeFirst()
    perform(step)
    DispatchQueue.main.asyncAfter(deadline: .now() + pause, execute: next)
}
DispatchQueue.main.asyncAfter(deadline: .now() + pause, execute: next)
RunLoop.main.run()
