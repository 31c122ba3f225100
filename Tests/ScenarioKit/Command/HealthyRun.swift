import CoreFoundation
import Foundation
import StallWatch
import Synchronization

/// Healthy loops of five kinds, all at the same time: none of them may give a report, however long they run; one of
/// them takes a CPU, and the others together less than another one: a loop without a CPU stalls.
struct HealthyRun {
    let length: Duration
    let threshold: Duration
    let directory: String

    /// Runs the loops, and shows the turns of each and what was reported; returns whether nothing was.
    func run() async throws -> Bool {
        let monitor = try makeMonitor(saturationThreshold: .seconds(10))
        // Its loop is saturated by design, and must not count as stalled or spinning.
        let fedMonitor = try makeMonitor(saturationThreshold: .seconds(24 * 3600))
        let inbox = ReportInbox()
        for monitor in [monitor, fedMonitor] { await inbox.open(monitor.makeReports()) }

        // Computes for a frame between the turns of its loop, as games do.
        let game = await LoopThread.start("game") { thread in
            while !thread.isStopping {
                CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true)
                spinTheCPU(for: .microseconds(16_600))
            }
        }
        let fed = await LoopThread.start("fed", LoopThread.runOnce)
        Source0(on: fed.driven.runLoop) { source in
            computeBriefly()
            usleep(200)
            source.signal()
        }.signal()
        let busy = await LoopThread.start("busy", LoopThread.runOnce)
        let nested = await LoopThread.start("nested", LoopThread.runOnce)
        let dialog = await LoopThread.start("dialog", LoopThread.runOnce)
        let timers = [
            // Due in a gap, often.
            BusyTimer(on: game.driven, every: 0.05),
            turnOften(busy.driven),
            BusyTimer(on: nested.driven, every: 0.01) { spinTheCPU(for: .microseconds(300)) },
            BusyTimer(on: nested.driven, every: 3) { runNested(for: .seconds(2)) },
            // Due all the time in which the dialog is open.
            BusyTimer(on: dialog.driven, every: 0.1),
            BusyTimer(on: dialog.driven, every: 3) { runNested(for: .seconds(2), in: "dialog") },
        ]

        try fedMonitor.watch(.runLoop(fed.runLoop, label: "fed"))
        for (thread, label) in [(game, "game"), (busy, "busy"), (nested, "nested"), (dialog, "dialog")] {
            try monitor.watch(.runLoop(thread.runLoop, label: label))
        }
        await pause(length)
        let loops = (monitor.statistics.loops + fedMonitor.statistics.loops).sorted { $0.label < $1.label }
        for timer in timers { timer.stop() }
        for thread in [game, fed, busy, nested, dialog] { await thread.stop() }
        for monitor in [monitor, fedMonitor] { monitor.stop() }
        let reports = await inbox.rest()

        for loop in loops {
            let share = ((loop.utilization ?? 0) * 100).oneDecimal
            try StandardOutput.write("\(loop.label): \(loop.turns) turns, busy for \(share) %\n")
        }
        for report in reports {
            let what = report.cause?.summary ?? "no cause"
            try StandardOutput.write(
                "FAILED: \(report.kind.rawValue) of \(report.loop.label): \(what): \(report.fileName)\n")
        }
        try StandardOutput.write("\(reports.count) reports in \(length.seconds.oneDecimal) s\n")
        return reports.isEmpty && loops.allSatisfy { $0.turns > 0 }
    }

    private func makeMonitor(saturationThreshold: Duration) throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: threshold, outputs: [.directory(directory)],
            detection: .init(saturationThreshold: saturationThreshold))
        configuration.detection.modeStarvation?.modalModes = ["dialog"]
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        return monitor
    }
}

@inline(never)
private func computeBriefly() {
    var value: UInt64 = 1
    for round: UInt64 in 0..<300 { value = value &* 6_364_136_223_846_793_005 &+ round }
    withExtendedLifetime(value) {}
}

/// Makes a loop turn 10,000 times a second: a hundred turns that compute, and a wait.
private func turnOften(_ loop: DrivenLoop) -> BusyTimer {
    let left = Atomic(0)
    let source = Source0(on: loop.runLoop) { source in
        computeBriefly()
        if left.subtract(1, ordering: .relaxed).newValue > 0 { source.signal() }
    }
    return BusyTimer(on: loop, every: 0.01) {
        left.store(100, ordering: .relaxed)
        source.signal()
    }
}
