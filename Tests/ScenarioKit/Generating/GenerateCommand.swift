import ArgumentParser
import Foundation
import Glibc
import LinuxSupport
import StallReports
import StallWatch

/// Writes made-up reports of a fleet, for trying tools on many reports.
struct GenerateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-scenarios generate",
        abstract: "Writes made-up stall reports of a fleet: the same ones for the same numbers.",
        discussion: """
            The reports are of two weeks, several hosts and two versions of a program. Some kinds of stalls are far more \
            frequent than others, some got worse in the second version, and some are new on the last day.

            Examples:
              stallwatch-scenarios generate --reports 1000 --seed 7 --output stalls
              stallwatch-scenarios generate --reports 100000 --ndjson stalls.ndjson
            """
    )

    @Option(parsing: .unconditional, help: ArgumentHelp("How many reports, up to ten million.", valueName: "number"))
    var reports: Int

    @Option(help: ArgumentHelp("The seed of all that is random.", valueName: "number"))
    var seed: UInt64 = 1

    @Option(parsing: .unconditional, help: ArgumentHelp("How many kinds of stalls, up to 10000.", valueName: "number"))
    var kinds = 120

    @Option(parsing: .unconditional, help: ArgumentHelp("How many hosts, up to 100000.", valueName: "number"))
    var hosts = 20

    @Option(help: ArgumentHelp("Write a file per report into this directory, made if it is missing.", valueName: "dir"))
    var output: String?

    @Option(help: ArgumentHelp("Write all reports into this file, a line each.", valueName: "file"))
    var ndjson: String?

    @Flag(
        help: ArgumentHelp(
            "Make up stalls that repeat, and what monitors keep of them, in the directory of --output.",
            visibility: .hidden))
    var repeating = false

    func validate() throws {
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
        guard !repeating || (output != nil && reports > 0) else {
            throw ValidationError("--repeating needs --output and at least one stall.")
        }
    }

    func run() throws {
        do throws(ScenariosFailure) {
            if repeating, let output { return try writeHistories(to: output) }
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

    private func make(_ directory: String) throws(ScenariosFailure) {
        guard mkdir(directory, 0o755) == 0 || errno == EEXIST else {
            throw ScenariosFailure("\(directory) cannot be created", errno: errno)
        }
    }

    /// Writes one history into `before`, another one into `after`, and what they are about into `truth.json`.
    private func writeHistories(to directory: String) throws(ScenariosFailure) {
        try make(directory)
        var truths: [String: GeneratedHistory.Truth] = [:]
        for (number, side) in ["before", "after"].enumerated() {
            try make("\(directory)/\(side)")
            let history = GeneratedHistory(seed: seed, version: number, repeats: reports, losesFiles: seed % 3 == 2)
            for (name, bytes) in history.files { try write(bytes, to: "\(directory)/\(side)/\(name)") }
            truths[side] = history.truth
        }
        // Encoding cannot fail: the values are counts, finite numbers and strings.
        guard let truth = try? JSONEncoder().encode(truths) else { return }
        try write([UInt8](truth), to: directory + "/truth.json")
    }

    private func write(_ bytes: [UInt8], to path: String) throws(ScenariosFailure) {
        let file = try open(path)
        defer { close(file) }
        try write(bytes, to: file, path)
    }

    private func writeFiles(_ fleet: inout GeneratedFleet, to directory: String) throws(ScenariosFailure) {
        try make(directory)
        while let report = fleet.next() {
            // Not flushed to the disk, unlike a monitor's: nothing is lost if these are.
            try write(report.json, to: directory + "/" + report.fileName)
        }
    }

    /// Bytes that are gathered before they are written.
    private static let block = 1 << 20

    private func writeLines(_ fleet: inout GeneratedFleet, to path: String) throws(ScenariosFailure) {
        let file = try open(path)
        defer { close(file) }
        var lines: [UInt8] = []
        while let report = fleet.next() {
            lines += report.json
            guard lines.count >= Self.block else { continue }
            try write(lines, to: file, path)
            lines.removeAll(keepingCapacity: true)
        }
        try write(lines, to: file, path)
    }

    private func open(_ path: String) throws(ScenariosFailure) -> Int32 {
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw ScenariosFailure("\(path) cannot be created", errno: errno) }
        return file
    }

    private func write(_ bytes: [UInt8], to file: Int32, _ path: String) throws(ScenariosFailure) {
        if let error = writeAll(bytes, to: file) { throw ScenariosFailure("\(path) cannot be written", errno: error) }
    }
}

/// Made-up stalls that repeat, and the files that monitors keep of them.
///
/// The stalls of each kind last another time from some moment on. They are those of up to three hosts' processes,
/// which are restarted up to twice. Some are killed: they leave a stall abandoned and no statistics.
struct GeneratedHistory {
    /// What all files together say if their readers are right.
    struct Truth: Encodable {
        struct Group: Encodable {
            var count = 0
            var totalMilliseconds = 0.0
            var longestMilliseconds = 0.0
        }

        /// By fingerprint, without the stalls that only a missing file counts.
        var groups: [String: Group] = [:]
        /// Of the processes that ended in order.
        var statistics = Group()
    }

    private struct Stall {
        /// 0 to 1: the part of the time that had passed.
        var place: Double
        var milliseconds: Double
        var kind: Int
        var host: Int
    }

    private static let begin: Int64 = 1_793_491_200_000_000
    private static let seconds = 43_200.0

    private(set) var files: [(name: String, bytes: [UInt8])] = []
    private(set) var truth = Truth()
    private let kinds: [StallReport]
    private let losesFiles: Bool
    private var random: SplitMix64

    /// Both versions have stalls of the same kinds; the first one has `repeats` of them.
    init(seed: UInt64, version: Int, repeats: Int, losesFiles: Bool) {
        var kindRandom = SplitMix64(seed: seed)
        kinds = (0..<Int.random(in: 1...4, using: &kindRandom)).map { number in
            var report = GeneratedStack(number: number, using: &kindRandom).report(using: &kindRandom)
            report.frames[1].line = 88
            report.culprit?.line = 88
            report.repeats = 0
            report.metadata["version"] = GeneratedFleet.versions[version]
            return report
        }
        self.losesFiles = losesFiles
        random = SplitMix64(seed: seed &* 2 &+ UInt64(version))
        let lives = (0..<Int.random(in: 1...3, using: &random)).map { _ in Int.random(in: 1...3, using: &random) }
        let stalls = makeStalls(repeats: repeats, hosts: lives.count)
        for (host, lives) in lives.enumerated() {
            for life in 0..<lives {
                let range = Double(life) / Double(lives)..<Double(life + 1) / Double(lives)
                let mine = stalls.filter { $0.host == host && range.contains($0.place) }
                live(mine, on: host, range, isLast: life == lives - 1)
            }
        }
    }

    private mutating func makeStalls(repeats: Int, hosts: Int) -> [Stall] {
        var stalls: [Stall] = []
        for kind in kinds.indices {
            let change = Double.random(in: 0..<1, using: &random)
            let phases = (0..<2).map { _ in Double.random(in: 250...1_500, using: &random) }
            let count = kind == 0 ? repeats : Int(exp(Double.random(in: 0...log(Double(repeats)), using: &random)))
            for _ in 0..<count {
                let place = Double.random(in: 0..<1, using: &random)
                let milliseconds = phases[place < change ? 0 : 1] * Double.random(in: 1...1.3, using: &random)
                stalls.append(
                    Stall(
                        place: place, milliseconds: (milliseconds * 1_000).rounded() / 1_000, kind: kind,
                        host: .random(in: 0..<hosts, using: &random)))
            }
        }
        return stalls.sorted { $0.place < $1.place }
    }

    /// Adds the files that the monitor of one process leaves.
    private mutating func live(_ stalls: [Stall], on host: Int, _ range: Range<Double>, isLast: Bool) {
        var policy = RepeatPolicy(reportsPerMinute: .random(in: 2...30, using: &random))
        let pid = Int32.random(in: 300...32_000, using: &random)
        let isKilled = host > 0 && Bool.random(using: &random)
        // The stalls of each kind that no report counts yet, and the newest of their reports.
        var uncounted: [Int: (stalls: [Stall], report: StallReport)] = [:]
        for (number, stall) in stalls.enumerated() {
            var report = self.report(of: stall, host, pid, range.lowerBound)
            guard !isKilled || number < stalls.count - 1 else {
                report.state = .abandoned
                keep(report, of: [stall])
                continue
            }
            let decision = policy.decide(
                report.fingerprint ?? "", lasting: stall.milliseconds, at: UInt64(stall.place * Self.seconds * 1e9))
            report.repeats = decision.repeats.count
            report.repeated = decision.repeats.durations
            uncounted[stall.kind, default: ([], report)].stalls.append(stall)
            uncounted[stall.kind]?.report = report
            guard decision.suppressed == nil, let counted = uncounted.removeValue(forKey: stall.kind) else { continue }
            keep(report, of: counted.stalls)
        }
        for (_, newest) in uncounted.sorted(by: { $0.key < $1.key }) {
            // The next process would have renamed it.
            keep(newest.report, of: newest.stalls, isNewest: isKilled && isLast)
        }
        if !isKilled { addStatistics(of: stalls, seconds: (range.upperBound - range.lowerBound) * Self.seconds, pid) }
    }

    private mutating func report(of stall: Stall, _ host: Int, _ pid: Int32, _ begin: Double) -> StallReport {
        func time(_ place: Double) -> Timestamp {
            Timestamp(microsecondsSince1970: Self.begin + Int64(place * Self.seconds * 1_000_000))
        }
        var report = kinds[stall.kind]
        report.startedAt = time(stall.place)
        report.id = ReportIdentifier.make(at: report.startedAt, random: (random.next(), random.next()))
        report.durationMilliseconds = stall.milliseconds
        report.process.hostname = "web-\(host + 1)"
        report.process.bootID = "5c9d0e2a-0000-4000-8000-00000000000\(host)"
        report.process.pid = pid
        report.process.startTicks = UInt64(pid) * 1_000
        report.process.startedAt = time(begin)
        report.loop.thread = .init(id: pid, name: "notes")
        report.loop.turn = UInt64(stall.place * 1_000_000)
        report.cause?.onCPUMilliseconds = 0
        report.cause?.runQueueMilliseconds = 0
        report.cause?.blockedMilliseconds = stall.milliseconds
        let part = stall.milliseconds / Double(report.samples.count)
        for index in report.samples.indices { report.samples[index].weightMilliseconds = part }
        return report
    }

    /// Adds a report's file, unless it gets lost; then nothing counts its stalls.
    private mutating func keep(_ report: StallReport, of stalls: [Stall], isNewest: Bool = false) {
        guard !losesFiles || truth.groups.isEmpty || Int.random(in: 0..<5, using: &random) > 0 else { return }
        files.append((isNewest ? report.newestFileName : report.fileName, report.jsonData()))
        truth.groups[report.fingerprint ?? "", default: .init()].add(stalls.map(\.milliseconds))
    }

    private mutating func addStatistics(of stalls: [Stall], seconds: Double, _ pid: Int32) {
        truth.statistics.add(stalls.map(\.milliseconds))
        let loops = Dictionary(grouping: stalls) { kinds[$0.kind].loop.label }.sorted { $0.key < $1.key }
        let words = loops.map { label, stalls in
            let stalled = stalls.reduce(0) { $0 + $1.milliseconds } / 1_000
            let times = #""watchedSeconds": \#(seconds), "stallSeconds": \#(stalled)"#
            return #"{"label": "\#(label)", "stalls": \#(stalls.count), \#(times)}"#
        }
        let text = #"{"stalls": \#(stalls.count), "suppressed": {}, "loops": [\#(words.joined(separator: ", "))]}"#
        files.append(("statistics-\(files.count)-\(pid).json", Array(text.utf8)))
    }
}

extension GeneratedHistory.Truth.Group {
    fileprivate mutating func add(_ stalls: [Double]) {
        count += stalls.count
        totalMilliseconds += stalls.reduce(0, +)
        longestMilliseconds = max(longestMilliseconds, stalls.max() ?? 0)
    }
}
