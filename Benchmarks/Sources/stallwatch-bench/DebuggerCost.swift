import Dispatch
import Foundation
import Glibc
import Measuring
import Runtime
import LinuxSupport
import StallWatch
import Synchronization

/// The cost of manual methods (an attached debugger, the toolchain's Backtrace) compared with a stall report.
enum DebuggerCost {
    static let rounds = 5

    static func table() throws -> Table {
        let spinner = Spinner(frames: 60)
        defer { spinner.stop() }
        let ours = try (0..<rounds).map { _ in try report(of: spinner) }
        var table = Table(
            title: "A stack with names and lines by hand, median of \(rounds)",
            columns: ["way", "whole time, ms", "/ StallWatch's", "the thread stands still, ms", "/ StallWatch's"]
        )
        let medians = (Samples(ours.map(\.0)).median, Samples(ours.map(\.1)).median)
        func add(_ name: String, _ costs: [(Double, Double)]) {
            let (whole, still) = (Samples(costs.map(\.0)).median, Samples(costs.map(\.1)).median)
            table.rows.append([
                name, whole.digits(2), (whole / medians.0).digits(1), still.digits(3), (still / medians.1).digits(0),
            ])
        }
        add("StallWatch: from the threshold to the report", ours)
        add(
            "Backtrace.capture() and symbolicated(), by the thread itself",
            (0..<rounds).map { _ in spinner.ownBacktrace() })
        for command in [["gdb", "-batch", "-ex", "bt", "-p"], ["eu-stack", "-p"]] {
            let name = "\(command.joined(separator: " ")) PID"
            guard isInstalled(command[0]) else {
                table.rows.append([name, "not installed", "", "", ""])
                continue
            }
            add(name, try (0..<rounds).map { _ in try run(command, on: spinner) })
        }
        return table
    }

    /// Returns the milliseconds until the first report with names exists, and the longest time the thread was held.
    ///
    /// The monitor and its symbol tables are new each time, as a debugger's are.
    private static func report(of spinner: Spinner) throws -> (Double, Double) {
        let probe = LoopProbe(label: "measured")
        let threshold: UInt64 = 50_000_000
        var configuration = StallMonitor.Configuration(threshold: .nanoseconds(Int(threshold)), outputs: [])
        let named = Mutex<UInt64?>(nil)
        configuration.onEvent = { if case .began = $0 { named.withLock { $0 = $0 ?? now() } } }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        usleep(100_000)
        spinner.resetGap()
        let began = spinner.turn(of: probe, until: { named.withLock { $0 } != nil })
        guard let end = named.withLock({ $0 }) else { throw CannotMeasure("no stall was reported") }
        return (Double(end - began - threshold) / 1e6, spinner.longestGap)
    }

    private static func run(_ command: [String], on spinner: Spinner) throws -> (Double, Double) {
        spinner.resetGap()
        let began = now()
        let text = try output(of: "/usr/bin/env", command + ["\(getpid())"], showsErrors: false)
        let whole = Double(now() - began) / 1e6
        guard text.contains("main") else { throw CannotMeasure("\(command[0]) found no stack") }
        return (whole, spinner.longestGap)
    }

    private static func isInstalled(_ program: String) -> Bool {
        (try? output(of: "/usr/bin/env", ["which", program], showsErrors: false)) != nil
    }
}

/// A thread with a deep stack that reads the clock as fast as possible and records the longest gap.
private final class Spinner: Sendable {
    private struct Order {
        var probe: LoopProbe?
        var backtrace = false
    }
    private let order = Mutex(Order())
    private let hasOrder = Atomic<Bool>(false)
    private let isStopping = Atomic<Bool>(false)
    private let longest = Atomic<UInt64>(0)
    private let turnBegan = Atomic<UInt64>(0)
    private let backtraceTook = Atomic<UInt64>(0)

    init(frames: Int) {
        startThread { self.descend(frames) }
    }

    /// The longest gap since the last reset, in milliseconds.
    var longestGap: Double { Double(longest.load(ordering: .relaxed)) / 1e6 }

    func resetGap() {
        usleep(1000)
        longest.store(0, ordering: .relaxed)
    }

    func stop() { isStopping.store(true, ordering: .relaxed) }

    /// Keeps the thread in a turn of the probe until the condition holds, for 5 s at most; returns the turn's begin.
    func turn(of probe: LoopProbe, until isDone: () -> Bool) -> UInt64 {
        turnBegan.store(0, ordering: .relaxed)
        give(Order(probe: probe))
        let timeout = now() + 5_000_000_000
        while !isDone(), now() < timeout { usleep(200) }
        give(Order())
        return turnBegan.load(ordering: .acquiring)
    }

    /// Returns twice the milliseconds that the thread takes to capture and name its own stack: it is held all the time.
    func ownBacktrace() -> (Double, Double) {
        backtraceTook.store(0, ordering: .relaxed)
        give(Order(backtrace: true))
        while backtraceTook.load(ordering: .acquiring) == 0 { usleep(200) }
        let took = Double(backtraceTook.load(ordering: .acquiring)) / 1e6
        return (took, took)
    }

    private func give(_ new: Order) {
        order.withLock { $0 = new }
        hasOrder.store(true, ordering: .releasing)
    }

    @inline(never) private func descend(_ frames: Int) {
        if frames > 0 { descend(frames - 1) } else { spin() }
        // Work after the call, so that it is no tail call.
        isStopping.store(true, ordering: .relaxed)
    }

    @inline(never) private func spin() {
        var last = now()
        var current: LoopProbe?
        while !isStopping.load(ordering: .relaxed) {
            if hasOrder.exchange(false, ordering: .acquiringAndReleasing) {
                let order = order.withLock { $0 }
                current?.endTurn()
                current = order.probe
                if let current {
                    turnBegan.store(now(), ordering: .releasing)
                    current.beginTurn()
                }
                if order.backtrace { backtraceTook.store(Self.backtrace(), ordering: .releasing) }
                last = now()
            }
            let time = now()
            if time - last > longest.load(ordering: .relaxed) { longest.store(time - last, ordering: .relaxed) }
            last = time
        }
    }

    @inline(never) private static func backtrace() -> UInt64 {
        let began = now()
        let named = (try? Backtrace.capture())?.symbolicated()
        precondition(named?.frames.isEmpty == false)
        return now() - began
    }
}
