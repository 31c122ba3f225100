import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct HealthSourceTests {
    private static let second: UInt64 = 1_000_000_000
    /// The wall clock when the monotonic clock is at 0.
    private static let epoch: UInt64 = 1_795_248_000 * second

    private let source = HealthSource(process: .init(pid: 4_700, startTicks: 12, bootID: "5c9d"), interval: second)

    private func loop(_ label: String, _ state: LoopProgress.State, since: UInt64 = 1) -> LoopProgress {
        LoopProgress(label: label, state: state, since: since * Self.second)
    }

    /// The record of a reading at `time`, in seconds, that is made half a second later.
    private func record(_ loops: [LoopProgress], at time: UInt64) -> HealthRecord {
        let time = time * Self.second
        let now = time + Self.second / 2
        return source.record(
            of: ProgressReading(loops: loops, time: time, isPaused: false),
            now: (monotonic: now, wall: Self.epoch + now))
    }

    private func time(_ seconds: UInt64) -> Timestamp {
        Timestamp(wallClockNanoseconds: Self.epoch + seconds * Self.second)
    }

    private func report(
        _ id: String, _ state: StallState, of loop: String = "main", milliseconds: Double = 300
    ) throws -> StallReport {
        var report = try StallReport.literal()
        report.id = id
        report.state = state
        report.loop.label = loop
        report.durationMilliseconds = milliseconds
        return report
    }

    /// Keeps a report of a stall that began at that second.
    private func store(_ report: StallReport, since seconds: UInt64 = 3) {
        let wall = UInt64(clamping: report.startedAt.microsecondsSince1970) * 1_000
        source.store(report, now: (monotonic: seconds * Self.second, wall: wall))
    }

    @Test(
        arguments: [
            ([], false, .starting), ([], true, .ok), ([.running], false, .ok), ([.starting], false, .starting),
            ([.running, .starting], false, .starting), ([.running, .starting], true, .ok), ([.starting], true, .ok),
            ([.running, .stalled], true, .stalled), ([.stalled, .held, .starting], false, .stalled),
            ([.running, .held], true, .held), ([.ended, .running], true, .ok), ([.ended], true, .ok),
        ] as [([LoopProgress.State], Bool, HealthState)])
    func `the worst loop decides`(states: [LoopProgress.State], hasProgressed: Bool, state: HealthState) {
        #expect(HealthSource.state(of: states.map { loop("a", $0) }, hasProgressed: hasProgressed) == state)
    }

    @Test func `all records have the proof`() {
        let proof = MonitorProof(obstacle: "the monitor is paused")
        source.store(proof)
        let records = [source.lastRecord(), record([], at: 5), source.lastRecord(), source.stoppedRecord()]
        #expect(records.allSatisfy { $0.proof == HealthRecord.Proof(proof) })
    }

    @Test func `a record has the time of the watchdog's reading`() {
        let record = record([loop("main", .running, since: 3)], at: 5)
        #expect(record.state == .ok)
        #expect(record.checkedAtMonotonicMilliseconds == 5_000)
        #expect(record.checkedAt == time(5))
        #expect(record.intervalMilliseconds == 1_000)
        #expect(record.loops == [.init(label: "main", state: .running, since: time(3))])
        #expect(record.process.pid == 4_700)
        #expect(record.stall == nil)
    }

    @Test func `progress ends with a stall`() {
        #expect(record([loop("main", .running)], at: 10).progressedAt == time(10))
        #expect(record([loop("main", .stalled, since: 11)], at: 12).progressedAt == time(10))
        #expect(record([loop("main", .stalled, since: 11)], at: 19).progressedAt == time(10))
        #expect(record([loop("main", .held)], at: 20).progressedAt == time(10))
        #expect(record([loop("main", .running)], at: 21).progressedAt == time(21))
    }

    @Test func `before the first progress its time is the creation`() {
        let before = wallClockNow() / 1_000
        let source = HealthSource(process: .init(pid: 1))
        let reading = ProgressReading(loops: [loop("main", .starting)], time: monotonicNow(), isPaused: false)
        let progressed = source.record(of: reading).progressedAt.microsecondsSince1970
        #expect(progressed >= before && progressed <= wallClockNow() / 1_000)
        #expect(source.record(of: reading).progressedAt.microsecondsSince1970 == progressed)
    }

    @Test func `a stall without a report has a sentence`() {
        let record = record([loop("main", .stalled, since: 3)], at: 5)
        #expect(record.stall == .init(sentence: "main stalled and has not come back after 2000 ms", isOngoing: true))
        #expect(record.summary == "main stalled and has not come back after 2000 ms")
    }

    @Test func `a stall's sentence has the report's function and today's duration`() throws {
        store(try report("a", .ongoing))
        let record = record([loop("main", .stalled, since: 3)], at: 63)
        #expect(
            record.stall
                == .init(
                    sentence: "main stalled and has not come back after 60000 ms in NoteStore.save(_:) (timer)",
                    isOngoing: true, function: "NoteStore.save(_:)", report: "a"))
    }

    @Test func `the last stall stays after its end`() throws {
        source.store(try report("a", .ongoing))
        source.store(try report("a", .ended, milliseconds: 812))
        let record = record([loop("main", .running)], at: 5)
        #expect(record.stall?.sentence == "main stalled for 812 ms in NoteStore.save(_:) (timer)")
        #expect(record.stall?.isOngoing == false)
    }

    @Test func `an end does not remove the sentence of the next stall`() throws {
        store(try report("b", .ongoing))
        store(try report("a", .ended))
        #expect(record([loop("main", .stalled, since: 3)], at: 5).stall?.report == "b")
    }

    @Test func `the oldest stall comes first`() throws {
        store(try report("a", .ongoing, of: "worker"), since: 4)
        store(try report("b", .ongoing))
        let record = record(
            [loop("idle", .running), loop("worker", .stalled, since: 4), loop("main", .stalled, since: 3)], at: 5)
        #expect(record.stall?.report == "b")
        #expect(record.loops.map(\.label) == ["main", "worker", "idle"])
    }

    @Test func `stalls whose end was lost do not add up`() throws {
        store(try report("lost", .ongoing), since: 3)
        let stalled = loop("main", .stalled, since: 3)
        for number in 1..<HealthSource.maximumLoops {
            store(try report("\(number)", .ongoing, of: "other"), since: 4)
        }
        #expect(record([stalled], at: 5).stall?.report == "lost")
        store(try report("last", .ongoing, of: "other"), since: 4)
        #expect(record([stalled], at: 5).stall?.report == nil)
    }

    @Test func `of loops with one label the oldest stall's own report counts`() throws {
        store(try report("a", .ongoing), since: 3)
        store(try report("b", .ongoing), since: 32)
        let stalled = loop("main", .stalled, since: 3)
        #expect(record([stalled], at: 33).stall?.report == "a")
        store(try report("b", .ended), since: 32)
        #expect(record([stalled], at: 34).stall?.report == "a")
        store(try report("a", .ended), since: 3)
        store(try report("c", .ongoing), since: 32)
        #expect(record([stalled], at: 35).stall?.report == nil, "another loop's")
    }

    @Test func `a saturation is no stall`() throws {
        var saturation = try report("a", .ongoing)
        saturation.kind = .saturation
        source.store(saturation)
        #expect(record([loop("main", .stalled, since: 3)], at: 5).stall?.report == nil)
        saturation.state = .ended
        source.store(saturation)
        #expect(record([loop("main", .running)], at: 5).stall == nil)
    }

    @Test func `a record has 64 loops, the stalled ones first`() {
        let loops = (0..<100).map { loop("\(100 + $0)", $0 == 99 ? .stalled : .running) }
        let record = record(loops, at: 5)
        #expect(record.loops.count == 64)
        #expect(record.omittedLoops == 36)
        #expect(record.loops.first?.label == "199")
    }

    @Test func `a stopped monitor keeps its loops`() {
        _ = record([loop("main", .stalled)], at: 5)
        let stopped = source.stoppedRecord()
        #expect(stopped.state == .stopped)
        #expect(stopped.loops.map(\.state) == [.stalled])
    }
}

@Suite struct HealthFileTests {
    private let directory = TemporaryDirectory.ofTest()

    private func file(_ name: String = "health") throws -> HealthFile {
        try HealthFile(path: directory.path(name), interval: 200_000_000)
    }

    private func record(progressedAt seconds: Int64) -> HealthRecord {
        let time = Timestamp(microsecondsSince1970: seconds * 1_000_000 + 250_000)
        return HealthRecord(
            state: .ok, checkedAt: time, checkedAtMonotonicMilliseconds: 1, progressedAt: time,
            process: .init(pid: 1), loops: [])
    }

    /// The unnamed files that this process has open in the directory.
    private func pointers() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").map { "/proc/self/fd/\($0)" }.filter {
            readLink($0)?.hasPrefix("\(directory.path)/.\(HealthRecord.pointerName).") ?? false
        }
    }

    @Test func `the file is a record, as old as the progress`() throws {
        let file = try file()
        #expect(directory.names == [], "nothing is written before the first record")
        try file.publish(record(progressedAt: 1_795_248_000), at: 1_000)
        #expect(file.nextCheck(at: 1_000) == 200_001_000)
        #expect(directory.names == ["health"])
        let bytes = try #require(AtomicFile.read(directory.path("health"), limit: 1 << 20))
        #expect(HealthRecord(jsonData: bytes) == record(progressedAt: 1_795_248_000))
        let status = try #require(FileStatus(path: directory.path("health")))
        #expect(status.changedAt == 1_795_248_000_250_000_000)
        #expect(status.permissions == 0o600)
    }

    @Test func `the first record removes what a killed process has left`() throws {
        for name in ["health", ".\(HealthRecord.pointerName)"] {
            try directory.write(AtomicFile.temporaryPath(for: name, of: .gone), "")
        }
        let file = try file()
        #expect(directory.names.count == 2)
        try file.publish(record(progressedAt: 1), at: 0)
        #expect(directory.names == ["health"])
    }

    @Test func `the file stays in its directory, which may get another name`() throws {
        try #require(mkdir(directory.path("a"), 0o700) == 0)
        let file = try file("a/health")
        try #require(rename(directory.path("a"), directory.path("b")) == 0)
        try file.publish(record(progressedAt: 1), at: 0)
        #expect(FileStatus(path: directory.path("b/health")) != nil)
    }

    @Test func `without an answer the file stays as it is`() throws {
        let file = try file()
        try file.publish(record(progressedAt: 1), at: 0)
        let before = try #require(FileStatus(path: directory.path("health")))
        try file.publish(nil, at: 500)
        #expect(FileStatus(path: directory.path("health"))?.identity == before.identity)
    }

    @Test func `an unnamed file leads to it until the end`() throws {
        let file = try file()
        try file.publish(record(progressedAt: 1), at: 0)
        let found = try pointers()
        #expect(found.count == 1)
        let bytes = try #require(found.first.flatMap { AtomicFile.read($0, limit: 1 << 20) })
        #expect(String(decoding: bytes, as: UTF8.self) == directory.path("health"))
        try file.finish(record(progressedAt: 2))
        #expect(try pointers() == [])
        #expect(FileStatus(path: directory.path("health"))?.changedAt == 2_250_000_000)
    }

    @Test func `a failure is reported, and the next attempt may succeed`() throws {
        let file = try file("folder")
        try FileManager.default.createDirectory(atPath: directory.path("folder"), withIntermediateDirectories: false)
        let error = #expect(throws: StallWatchError.self) { try file.publish(record(progressedAt: 1), at: 0) }
        #expect(error?.code == .unwritableReports)
        #expect(directory.names == ["folder"], "no temporary file is left")
        try FileManager.default.removeItem(atPath: directory.path("folder"))
        try file.publish(record(progressedAt: 1), at: 0)
        #expect(FileStatus(path: directory.path("folder"))?.isRegular == true)
    }

    @Test func `a directory that was made again is found again`() throws {
        try #require(mkdir(directory.path("a"), 0o700) == 0)
        let file = try file("a/health")
        try #require(rmdir(directory.path("a")) == 0 && mkdir(directory.path("a"), 0o700) == 0)
        try file.publish(record(progressedAt: 1), at: 0)
        #expect(FileStatus(path: directory.path("a/health")) != nil)
    }

    @Test func `a path that cannot be written is refused at once`() throws {
        let missing = #expect(throws: StallWatchError.self) { try file("no/health") }
        #expect(missing?.code == .unwritableReports)
        #expect(
            missing?.message
                == "the health file \(directory.path("no/health")) cannot be written: create its directory, or make it writable"
        )
        let folder = #expect(throws: StallWatchError.self) { try HealthFile(path: "/tmp", interval: 1) }
        #expect(folder?.message == "the health file /tmp is not a regular file: name another path")
    }
}
