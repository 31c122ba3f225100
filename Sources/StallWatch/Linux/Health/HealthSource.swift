import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// Makes health records of the watchdog's readings and of the sentences of the reports, for any thread.
final class HealthSource: Sendable {
    private struct Memory {
        /// The newest reports of ongoing stalls by id, each with the stall's begin and the time of the report, in monotonic
        /// nanoseconds: several loops may have one label.
        var stalls: [String: (report: StallReport, start: UInt64, news: UInt64)] = [:]
        var lastStall: HealthRecord.Stall?
        /// Whether all loops have made progress at once.
        var hasProgressed = false
        /// The last record; before the first, one that says when this was created.
        var last: HealthRecord

        /// The report of a loop's ongoing stall; `nil` if only other loops with its label have one.
        func report(of loop: LoopProgress) -> StallReport? {
            func distance(_ start: UInt64) -> UInt64 { Int64(bitPattern: start &- loop.since).magnitude }
            return stalls.values.filter { $0.report.loop.label == loop.label && distance($0.start) <= Self.tolerance }
                .min { distance($0.start) < distance($1.start) }?.report
        }
        /// Leaves out the stall without news for longest, if there are too many: the end of one may have been lost.
        mutating func limitStalls() {
            guard stalls.count > HealthSource.maximumLoops else { return }
            if let oldest = stalls.min(by: { $0.value.news < $1.value.news }) { stalls[oldest.key] = nil }
        }

        /// How far the begin in a report may be from that of the reading, in nanoseconds: clocks are read after the look.
        private static let tolerance: UInt64 = 1_000_000_000
    }
    private let memory: Mutex<Memory>
    private let process: HealthRecord.Process
    /// The time between two records in the health file, in nanoseconds; `nil` if there is no such file.
    private let interval: UInt64?
    private let isOff: Bool

    init(process: HealthRecord.Process = .current(), interval: UInt64? = nil, isOff: Bool = false) {
        self.process = process
        self.interval = interval
        self.isOff = isOff
        let now = Timestamp(wallClockNanoseconds: wallClockNow())
        let first = HealthRecord(
            state: .starting, checkedAt: now, checkedAtMonotonicMilliseconds: monotonicNow() / 1_000_000,
            progressedAt: now, intervalMilliseconds: interval.map(milliseconds), process: process, loops: [])
        memory = Mutex(Memory(last: first))
    }

    /// Keeps what the newest report of a stall says; saturated, spinning or with an overdue operation, it progresses.
    func store(
        _ report: StallReport, now: (monotonic: UInt64, wall: UInt64) = (monotonicNow(), wallClockNow())
    ) {
        guard !report.kind.isPeriod, report.kind != .overdue else { return }
        var outline = report
        // The sentence needs none of them.
        outline.removeObservations()
        memory.withLock { memory in
            if report.state == .ongoing {
                // Kept from the first report on: the wall clock may be set meanwhile.
                let age = now.wall / 1_000 &- UInt64(clamping: report.startedAt.microsecondsSince1970)
                let start = memory.stalls[report.id]?.start ?? now.monotonic &- age &* 1_000
                memory.stalls[report.id] = (outline, start, now.monotonic)
                memory.limitStalls()
            } else {
                memory.lastStall = HealthRecord.Stall(outline)
                memory.stalls[report.id] = nil
            }
        }
    }

    /// Keeps a proof for all further records.
    func store(_ proof: MonitorProof) { memory.withLock { $0.last.proof = HealthRecord.Proof(proof) } }

    /// Returns the record of a reading, at times in nanoseconds.
    func record(
        of reading: ProgressReading, now: (monotonic: UInt64, wall: UInt64) = (monotonicNow(), wallClockNow())
    ) -> HealthRecord {
        memory.withLock { memory in
            let word = isOff ? .off : Self.state(of: reading.loops, hasProgressed: memory.hasProgressed)
            if word == .ok { memory.hasProgressed = true }
            let timestamp = { (time: UInt64) in
                Timestamp(wallClockNanoseconds: now.wall &- (now.monotonic &- min(time, now.monotonic)))
            }
            let checkedAt = timestamp(reading.time)
            let stalled = reading.loops.filter { $0.state == .stalled }.min { $0.since < $1.since }
            let sorted = reading.loops.sorted { $0.label < $1.label }
            let loops = sorted.filter { $0.state != .running } + sorted.filter { $0.state == .running }
            var record = HealthRecord(
                state: word, checkedAt: checkedAt, checkedAtMonotonicMilliseconds: reading.time / 1_000_000,
                progressedAt: word == .ok || isOff ? checkedAt : memory.last.progressedAt,
                intervalMilliseconds: interval.map(milliseconds), isPaused: reading.isPaused, process: process,
                loops: loops.prefix(Self.maximumLoops).map { loop in
                    HealthRecord.LoopHealth(label: loop.label, state: loop.state, since: timestamp(loop.since))
                },
                omittedLoops: max(loops.count - Self.maximumLoops, 0),
                stall: stalled.map { HealthRecord.Stall(ongoing: $0, memory.report(of: $0), at: reading.time) }
                    ?? memory.lastStall
            )
            record.proof = memory.last.proof
            memory.last = record
            return record
        }
    }

    func lastRecord() -> HealthRecord { memory.withLock { $0.last } }

    func stoppedRecord() -> HealthRecord {
        var record = lastRecord()
        record.state = .stopped
        record.checkedAt = Timestamp(wallClockNanoseconds: wallClockNow())
        record.checkedAtMonotonicMilliseconds = monotonicNow() / 1_000_000
        return record
    }

    static let maximumLoops = 64

    /// Returns the state of a process with these loops.
    ///
    /// Once it has been `ok`, a new loop without a first turn does not matter, as it may be a queue that is never used. Nor
    /// does it if no loop is watched, as between two jobs with a loop each: a supervisor would end the process.
    static func state(of loops: [LoopProgress], hasProgressed: Bool) -> HealthState {
        let states = Set(loops.map(\.state))
        if states.contains(.stalled) { return .stalled }
        if states.contains(.held) { return .held }
        if (states.isEmpty || states.contains(.starting)) && !hasProgressed { return .starting }
        return .ok
    }
}

extension HealthRecord.Stall {
    init(_ report: StallReport) {
        self.init(
            sentence: report.headline, isOngoing: report.state == .ongoing, function: report.culprit?.function,
            report: report.id)
    }

    /// The ongoing stall of a loop; the duration in its newest report, if there is one, is that of its last sample.
    fileprivate init(ongoing loop: LoopProgress, _ report: StallReport?, at time: UInt64) {
        let age = milliseconds(time &- min(loop.since, time))
        guard var report else {
            let sentence = "\(loop.label) stalled and has not come back after \(Int(age.rounded())) ms"
            self.init(sentence: sentence, isOngoing: true)
            return
        }
        report.durationMilliseconds = max(age, report.durationMilliseconds)
        self.init(report)
    }
}

extension HealthRecord.Process {
    static func current() -> Self {
        let identity = ProcessIdentity.current()
        var process = Self(
            pid: getpid(), startTicks: identity?.startTicks, bootID: identity?.bootID,
            pidNamespace: ProcessIdentity.ownPIDNamespace)
        process.hostname = ProcessIdentity.ownHost
        return process
    }
}
