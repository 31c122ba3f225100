package import ArgumentParser
import LinuxSupport
import Glibc

/// Writes made-up reports of a fleet, for trying tools on many reports.
package struct GenerateCommand: ParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "stallwatch-demo generate",
        abstract: "Writes made-up stall reports of a fleet: the same ones for the same numbers.",
        discussion: """
            The reports are of two weeks, several hosts and two versions of a program. Some kinds of stalls are far more \
            frequent than others, some got worse in the second version, and some are new on the last day.

            Examples:
              stallwatch-demo generate --reports 1000 --seed 7 --output stalls
              stallwatch-demo generate --reports 100000 --ndjson stalls.ndjson
            """
    )

    @Option(parsing: .unconditional, help: ArgumentHelp("How many reports, up to ten million.", valueName: "number"))
    package var reports: Int

    @Option(help: ArgumentHelp("The seed of all that is random.", valueName: "number"))
    package var seed: UInt64 = 1

    @Option(parsing: .unconditional, help: ArgumentHelp("How many kinds of stalls, up to 10000.", valueName: "number"))
    package var kinds = 120

    @Option(parsing: .unconditional, help: ArgumentHelp("How many hosts, up to 100000.", valueName: "number"))
    package var hosts = 20

    @Option(
        help: ArgumentHelp("Write a file per report into this directory, made if it is missing.", valueName: "dir"))
    package var output: String?

    @Option(help: ArgumentHelp("Write all reports into this file, a line each.", valueName: "file"))
    package var ndjson: String?

    package init() {}

    package func validate() throws {
        guard (0...10_000_000).contains(reports) else {
            throw ValidationError("The value '\(reports)' of --reports is out of range: choose 0 to 10000000.")
        }
        guard (1...10_000).contains(kinds) else {
            throw ValidationError("The value '\(kinds)' of --kinds is out of range: choose 1 to 10000.")
        }
        guard (1...100_000).contains(hosts) else {
            throw ValidationError("The value '\(hosts)' of --hosts is out of range: choose 1 to 100000.")
        }
        guard (output == nil) != (ndjson == nil) else {
            throw ValidationError(
                "Choose where the reports go: either --output with a directory or --ndjson with a file.")
        }
    }

    package func run() throws {
        do throws(DemoFailure) {
            var fleet = GeneratedFleet(seed: seed, reports: reports, kinds: kinds, hosts: hosts)
            if let ndjson {
                try writeLines(&fleet, to: ndjson)
            } else if let output {
                try writeFiles(&fleet, to: output)
            }
        } catch {
            StandardError.write("Error: \(error.sentence)\n")
            throw ExitCode(error.status.rawValue)
        }
    }

    private func writeFiles(_ fleet: inout GeneratedFleet, to directory: String) throws(DemoFailure) {
        guard mkdir(directory, 0o755) == 0 || errno == EEXIST else {
            throw DemoFailure("\(directory) cannot be created", errno: errno)
        }
        while let report = fleet.next(.indented) {
            let path = directory + "/" + report.fileName
            // Not flushed to the disk, unlike a monitor's: nothing is lost if these are.
            let file = try open(path)
            try write(report.json, to: file, path)
            close(file)
        }
    }

    /// Bytes that are gathered before they are written.
    private static let block = 1 << 20

    private func writeLines(_ fleet: inout GeneratedFleet, to path: String) throws(DemoFailure) {
        let file = try open(path)
        defer { close(file) }
        var lines: [UInt8] = []
        while let report = fleet.next(.line) {
            lines += report.json
            guard lines.count >= Self.block else { continue }
            try write(lines, to: file, path)
            lines.removeAll(keepingCapacity: true)
        }
        try write(lines, to: file, path)
    }

    private func open(_ path: String) throws(DemoFailure) -> Int32 {
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw DemoFailure("\(path) cannot be created", errno: errno) }
        return file
    }

    private func write(_ bytes: [UInt8], to file: Int32, _ path: String) throws(DemoFailure) {
        if let error = writeAll(bytes, to: file) { throw DemoFailure("\(path) cannot be written", errno: error) }
    }
}
