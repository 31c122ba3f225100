import Glibc
import StallReports

/// A fleet whose programs stall: made-up reports in the order of time, the same ones for the same seed.
struct GeneratedFleet {
    /// A report's JSON, with the name of its file.
    struct Report {
        var fileName: String
        var json: [UInt8]
    }

    /// A process of a host, from its start until the next deployment.
    private struct Process {
        var hostname: String
        var bootID: String
        var pid: Int
        var startTicks: Int
        var startedAt: Timestamp
        var version: String
    }

    private static let microsecondsPerDay: Int64 = 86_400_000_000
    /// 2026-11-01T00:00:00Z, and the days from then on.
    private static let begin: Int64 = 1_793_491_200_000_000
    static let days: Int64 = 14
    /// The day on which the second version is deployed.
    private static let deployment: Int64 = 7
    static let versions = ["1.4.2", "1.5.0"]

    private var random: SplitMix64
    private let count: Int
    private let kinds: [GeneratedKind]
    /// The kinds' weights, summed up.
    private let sums: [Double]
    /// Per version, per host.
    private let processes: [[Process]]
    private var done = 0

    init(seed: UInt64, reports: Int, kinds kindCount: Int, hosts: Int) {
        var random = SplitMix64(seed: seed)
        kinds = (0..<kindCount).map { GeneratedKind(number: $0, using: &random) }
        var sum = 0.0
        sums = kinds.map { kind in
            sum += kind.weight
            return sum
        }
        let bootIDs = (0..<hosts).map { _ in
            ReportIdentifier.make(at: Timestamp(microsecondsSince1970: 0), random: random.pair())
        }
        processes = Self.versions.enumerated().map { index, version in
            (0..<hosts).map { host in
                let started =
                    Self.begin + Int64(index) * Self.deployment * Self.microsecondsPerDay
                    - Int64.random(in: 60_000_000...3_600_000_000, using: &random)
                return Process(
                    hostname: "web-\(host + 1)", bootID: bootIDs[host], pid: .random(in: 300...32_000, using: &random),
                    startTicks: .random(in: 10_000...9_000_000, using: &random),
                    startedAt: Timestamp(microsecondsSince1970: started), version: version
                )
            }
        }
        self.random = random
        count = reports
    }

    /// The next report; `nil` after the last one.
    mutating func next(_ form: ReportTemplate.Form) -> Report? {
        guard done < count else { return nil }
        let step = Self.days * Self.microsecondsPerDay / Int64(count)
        let time = Self.begin + Int64(done) * step + Int64.random(in: 0..<max(step, 1), using: &random)
        done += 1
        let day = (time - Self.begin) / Self.microsecondsPerDay
        let version = day < Self.deployment ? 0 : 1
        let kind = pickKind(day: day)
        guard let process = processes[version].randomElement(using: &random) else { return nil }
        let startedAt = Timestamp(microsecondsSince1970: time)
        let id = ReportIdentifier.make(at: startedAt, random: random.pair())
        let occurrence = ReportTemplate.Occurrence(
            id: id, startedAt: startedAt, milliseconds: kind.milliseconds(version: version, using: &random),
            repeats: Double.random(in: 0..<1, using: &random) < 0.1 ? .random(in: 1...8, using: &random) : 0,
            hostname: process.hostname, bootID: process.bootID, pid: process.pid, startTicks: process.startTicks,
            processStartedAt: process.startedAt, version: process.version,
            turn: .random(in: 100...5_000_000, using: &random), line: kind.line + version * 3
        )
        let stamp = startedAt.description.filter { $0 != "-" && $0 != ":" }
        return Report(fileName: "stall-\(stamp)-\(id.suffix(12)).json", json: kind.template.json(occurrence, form))
    }

    private mutating func pickKind(day: Int64) -> GeneratedKind {
        while true {
            let place = Double.random(in: 0..<(sums.last ?? 1), using: &random)
            let kind = kinds[sums.firstIndex { place < $0 } ?? 0]
            // The first kind is on every day, so this ends.
            if day >= (kind.isNew ? Self.days - 1 : 0) { return kind }
        }
    }
}

extension SplitMix64 {
    /// Two numbers, as an identifier needs.
    fileprivate mutating func pair() -> (UInt64, UInt64) { (next(), next()) }
}

/// A kind of made-up stalls: one path through a program, with its cause and how long such stalls last.
struct GeneratedKind {
    /// How frequent the kind is beside others.
    let weight: Double
    /// Whether it is found on the last day only.
    let isNew: Bool
    /// The culprit's line in the first version.
    let line: Int
    let template: ReportTemplate
    /// The mean of what stalls last over the threshold, in milliseconds, in the first version.
    private let mean: Double
    /// How many times longer stalls are in the second version.
    private let slowdown: Double

    private static let threshold = 250.0

    init(number: Int, using random: inout SplitMix64) {
        // Zipf's law: a few kinds have most of the stalls.
        weight = 1 / Double(number + 1)
        isNew = number > 0 && number % 17 == 16
        mean = .random(in: 40...900, using: &random)
        slowdown = number % 11 == 5 ? 2.5 : 1
        line = .random(in: 20...900, using: &random)
        let stack = GeneratedStack(number: number, using: &random)
        template = ReportTemplate(stack.report(using: &random), shares: stack.shares)
    }

    /// The duration of a stall: exponential above the threshold.
    func milliseconds(version: Int, using random: inout SplitMix64) -> Double {
        let place = Double.random(in: 0..<1, using: &random)
        let duration = Self.threshold - log(1 - place) * mean * (version == 0 ? 1 : slowdown)
        return (duration * 1_000).rounded() / 1_000
    }
}
