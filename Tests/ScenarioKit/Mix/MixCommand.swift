import ArgumentParser
import Foundation
import Glibc
import LinuxSupport
import StackCapture
import StallWatch
import Synchronization

/// Stalls loops in random combinations, and writes what is true of each report.
struct MixCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-scenarios mix",
        abstract: "Stalls loops in random combinations of a blocker, a holder, a build and a loop.",
        discussion: """
            Writes a line for each stall into truth.ndjson beside the reports: what is true of the report. \
            Tests/Programs/precision.py judges the reports by it.
            """
    )

    @Option(help: ArgumentHelp("How many stalls, some 0.2 seconds each.", valueName: "number"))
    var count = 100

    @Option(help: ArgumentHelp("The seed of all that is random.", valueName: "number"))
    var seed: UInt64 = 1

    @Option(help: ArgumentHelp("The directory for the reports, made if it is missing.", valueName: "dir"))
    var output = "stalls"

    @Option(help: ArgumentHelp("The folder with the builds of mix.c (Tests/Samples/Cases/build.sh).", valueName: "dir"))
    var libraries: String

    private static let threshold = Duration.milliseconds(50)
    /// How long a report may take after its stall, on a busy machine.
    private static let patience = Duration.seconds(30)

    func run() throws {
        do {
            var configuration = StallMonitor.Configuration(threshold: Self.threshold, outputs: [.all(in: output)])
            configuration.repeats.reportsEveryRepeat = true
            configuration.repeats.maximumReportsPerMinute = 10_000
            let monitor = try StallMonitor(configuration)
            defer { monitor.stop() }
            let truth = try MainLoop.run { () async throws(ScenariosFailure) -> String in
                do { return try await stall(watchedBy: monitor) } catch { throw ScenariosFailure(error, of: "the mix") }
            }
            let file = output + "/truth.ndjson"
            guard FileManager.default.createFile(atPath: file, contents: Data(truth.utf8)) else {
                throw ScenariosFailure(.cannotCreate, "\(file) cannot be made: name another directory")
            }
        } catch let failure as ScenariosFailure {
            StandardError.write("Error: \(failure.sentence)\n")
            throw ExitCode(failure.status.rawValue)
        }
    }

    /// Runs all stalls, one at a time; returns the lines of the truth.
    private func stall(watchedBy monitor: StallMonitor) async throws -> String {
        let mix = try StallMix(libraries: libraries, directory: output)
        let thread = await LoopThread.start("mix-loop", LoopThread.runOnce)
        let queue = DispatchQueue(label: "mix.queue")
        let loops = [
            WatchedLoop.runLoop(.main, label: "main"), .runLoop(thread.runLoop, label: "thread"),
            .queue(queue, label: "queue"),
        ]
        for loop in loops { try monitor.watch(loop) }
        try monitor.start()
        let inbox = ReportInbox()
        await inbox.open(monitor.makeReports())
        let callouts = Self.callouts(thread.driven, queue)
        var random = SplitMix64(seed: seed)
        var lines = ""
        for _ in 0..<count {
            let callout = callouts[Int.random(in: 0..<callouts.count, using: &random)]
            let stall = await mix.stall(of: Int.random(in: 100...140, using: &random), &random)
            while !stall.isReady() { await pause(.milliseconds(1)) }
            let measured = MixMeasurement()
            let duration = await callout.run { measured.measure(stall.block) }
            // A queue is looked at twice per threshold, and then gets an item that has to be late.
            let isLong = duration >= Self.threshold * (callout.loop == "queue" ? 2.5 : 1.2)
            let reports = await inbox.reports(
                atLeast: 1, within: isLong ? Self.patience : .milliseconds(300), settling: .milliseconds(20))
            let report = reports.first { $0.loop.label == callout.loop }
            lines += """
                {"report": "\(report?.id ?? "")", "isLong": \(isLong), "case": "\(stall.name) \(callout.loop)", \
                "callout": "\(callout.name)", "milliseconds": \(duration.milliseconds), \(measured.truth), \
                \(stall.truth())}\n
                """
            stall.end()
        }
        await thread.stop()
        return lines
    }

    private typealias Callout = (
        loop: String, name: String, run: @Sendable (@escaping DrivenLoop.Work) async -> Duration
    )

    private static func callouts(_ thread: DrivenLoop, _ queue: DispatchQueue) -> [Callout] {
        [
            ("main", "timer", MainLoop.timer), ("main", "source0", DrivenLoop.main.source0),
            ("main", "performedBlock", DrivenLoop.main.block), ("main", "mainQueue", MainLoop.mainQueue),
            ("main", "mainQueue", mainActor), ("thread", "timer", thread.timer), ("thread", "source0", thread.source0),
            ("thread", "performedBlock", thread.block), ("queue", "", queue.time),
        ]
    }

    private static func mainActor(_ work: @escaping DrivenLoop.Work) async -> Duration {
        await Task { @MainActor in DrivenLoop.time(work) }.value
    }
}

/// What a stalled thread did, by the kernel's counts.
private final class MixMeasurement: Sendable {
    private let text = Mutex("\"thread\": 0")

    /// Members of a JSON object.
    var truth: String { text.withLock { $0 } }

    func measure(_ work: () -> Void) {
        let before = ThreadProbe.readBriefly(callingThread, .schedstat)
        work()
        guard let before, let after = ThreadProbe.readBriefly(callingThread, .schedstat) else { return }
        let onCPU = Double(after.onCPU - before.onCPU) / 1e6
        let ready = Double(after.runQueue - before.runQueue) / 1e6
        text.withLock { $0 = "\"thread\": \(callingThread), \"onCPU\": \(onCPU), \"ready\": \(ready)" }
    }
}
