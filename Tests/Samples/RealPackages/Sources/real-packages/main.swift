import Dispatch
import Foundation
import StallWatch

// Stalls in functions that call into packages as they are published, into Foundation and into the Swift runtime; then reads
// the reports: each has to blame the function that made the call. Exit status 1 if one does not.
//
//   real-packages [REPORTS [LABEL]]   REPORTS: a folder for the reports; LABEL: only the stalls whose labels contain it.

/// How long each report may take after its stall: it ends hangs only.
let patience = 120.0
let arguments = CommandLine.arguments.dropFirst()
let wanted = arguments.dropFirst().first
let inbox = ReportInbox()

var configuration = StallMonitor.Configuration(
    threshold: .milliseconds(100), outputs: [.closure { inbox.add($0) }])
if let directory = arguments.first { configuration.outputs.append(.directory(directory)) }
configuration.repeats.maximumReportsPerMinute = 1_000
configuration.repeats.reportsEveryRepeat = true

#if HEAVY_PACKAGES
    try prepareDatabase()
#else
    let databaseStalls: [LabeledStall] = []
#endif
let all =
    databaseStalls + serverStalls + collectionStalls + foundationStalls + formatStalls + waitingStalls + systemStalls
    + languageStalls + closureStalls + declarationStalls + concurrencyStalls + generatedStalls
let stalls = all.filter { stall in wanted.map { stall.label.contains($0) } ?? true }
prepareFoundation()
Server.start()

let monitor = try StallMonitor(configuration)
try monitor.watch(.runLoop(.main, label: "main"))
try monitor.watch(.eventLoop(eventLoop, label: "nio"))
try monitor.watch(.queue(monitoredQueue, label: "queue"))
try monitor.start()

/// What is true of the reports, for Tests/Programs/precision.py.
let truth = arguments.first.flatMap { directory in
    let file = directory + "/truth.ndjson"
    return FileManager.default.createFile(atPath: file, contents: nil) ? FileHandle(forWritingAtPath: file) : nil
}

/// Makes the loop stall, and says what is wrong with the report.
@Sendable func check(_ stall: LabeledStall) -> [String] {
    inbox.removeAll()
    let begin = Date()
    let body: @Sendable () -> Void = {
        do { try stall.body() } catch { print("\(stall.label): \(error)") }
    }
    switch stall.loop {
    case .main: DispatchQueue.main.async(execute: body)
    case .nio: eventLoop.execute(body)
    case .queue: monitoredQueue.async(execute: body)
    }
    guard let report = inbox.next(of: stall.loop.rawValue, since: begin, within: patience) else {
        return ["no report"]
    }
    truth?.write(stall.truth(of: report))
    return Judgment(report, of: stall).mistakes
}

Foundation.Thread.detachNewThread {
    // Lets the loops turn, and libraries read what they read at the first use.
    usleep(500_000)
    var wrong = 0
    for stall in stalls {
        let mistakes = check(stall)
        if mistakes.isEmpty {
            print("ok    \(stall.label)")
        } else {
            wrong += 1
            print("WRONG \(stall.label): expected \(mistakes.joined(separator: "; expected "))")
        }
        fflush(nil)
        usleep(50_000)
    }
    print("\(stalls.count - wrong) of \(stalls.count) reports are right")
    monitor.stop()
    Server.remove()
    removeFiles()
    exit(wrong == 0 && !stalls.isEmpty ? 0 : 1)
}
RunLoop.main.run()
