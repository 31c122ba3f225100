import ArgumentParser
import Foundation
import StallReports
import StallWatch

@main
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-demo",
        abstract: "Stalls a real main run loop in fifteen ways, and prints what StallWatch reports.",
        discussion: "Exit status: 0 if each stall gave a report, 1 if not, 64 for a usage error."
    )

    @Flag(help: "List the stalls and exit.")
    var list = false

    @Option(
        name: .customLong("stall"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Run only this stall. May be given several times. Default: all.", valueName: "name")
    )
    var names: [String] = []

    @Option(help: ArgumentHelp("The directory for the reports, made if it is missing.", valueName: "dir"))
    var output = "stalls"

    func validate() throws {
        for name in names where !Stall.all.contains(where: { $0.name == name }) {
            let known = Stall.all.map(\.name).joined(separator: ", ")
            throw ValidationError("There is no stall '\(name)': name one of \(known).")
        }
    }

    func run() throws {
        if list {
            for stall in Stall.all { print("\(stall.name): \(stall.summary)") }
            return
        }
        let monitor = try StallMonitor(
            .init(
                threshold: .milliseconds(250), outputs: [.directory(output)],
                detection: .init(saturationThreshold: .seconds(1))))
        try monitor.watch(.main)
        try monitor.start()
        let stalls = Stall.all.filter { names.isEmpty || names.contains($0.name) }
        Task.detached { [output] in
            do {
                let missing = try await Self.report(stalls, to: monitor, in: output)
                monitor.stop()
                if !missing.isEmpty { print("\nNo report of: \(missing.joined(separator: ", "))") }
                Self.exit(withError: missing.isEmpty ? nil : ExitCode.failure)
            } catch {
                Self.exit(withError: error)
            }
        }
        RunLoop.main.run()
    }

    private static func report(
        _ stalls: [Stall], to monitor: StallMonitor, in directory: String
    ) async throws -> [String] {
        let inbox = Inbox()
        let reports = monitor.makeReports()
        Task { for await report in reports { await inbox.add(report) } }
        var missing: [String] = []
        for stall in stalls {
            print("\n\(stall.name): \(stall.summary)")
            try await stall.run(monitor)
            if let report = await inbox.report(of: stall.loop) {
                print("  \(report.summary)\n  \(directory)/\(report.fileName)")
            } else {
                missing.append(stall.name)
            }
        }
        return missing
    }
}

private actor Inbox {
    private var reports: [StallReport] = []

    func add(_ report: StallReport) { reports.append(report) }

    /// Waits up to ten seconds for the next report of a loop.
    func report(of loop: String) async -> StallReport? {
        for _ in 0..<200 {
            if let index = reports.firstIndex(where: { $0.loop.label == loop }) { return reports.remove(at: index) }
            try? await Task.sleep(for: .milliseconds(50))
        }
        return nil
    }
}
