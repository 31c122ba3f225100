import Glibc
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct NDJSONFileTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test(arguments: ["", "{\"a\"", "{\"a\":1}\n", "{\"a\":1}\nother\n", "other\n"])
    func `a line that failed is removed, unless others wrote behind it`(rest: String) throws {
        let path = scratch.path("part.ndjson")
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        #expect(writeAll(Array("one\n\(rest)".utf8), to: descriptor) == nil)
        let file = NDJSONFile(FixedFile(path), maximumBytes: 1 << 20, keep: 0)
        file.remove(Array("{\"a\":1}\n".utf8), from: KeptDescriptor(descriptor), at: 4)
        let left = try #require(AtomicFile.read(path, limit: 1 << 10))
        #expect(String(decoding: left, as: UTF8.self) == "one\n" + (rest.hasSuffix("other\n") ? rest : ""))
    }

    /// As after closefrom(3) while the disk is busy.
    @Test func `a file of the program that has the number is not cut`() throws {
        let opened = KeptDescriptor(open(scratch.path("own.ndjson"), O_RDWR | O_CREAT, 0o600))
        let path = try scratch.write("theirs", "one\n")
        let theirs = open(path, O_RDWR | O_CLOEXEC)
        try #require(dup2(theirs, opened.number) == opened.number)
        defer { for number in [theirs, opened.number] { close(number) } }
        let file = NDJSONFile(FixedFile(scratch.path("own.ndjson")), maximumBytes: 1 << 20, keep: 0)
        file.remove(Array("one\n".utf8), from: opened, at: 0)
        #expect(FileStatus(path: path)?.size == 4)
    }

    @Test func `the newest suppressed stall is written unless a report counts it`() throws {
        var kept = NewestSuppressed()
        var written: [StallReport] = []
        func receive(_ delivery: Delivery) throws { try kept.receive(delivery) { written.append($0) } }
        var report = Reporter.Settings.fixture().builder().report(of: .fixture())
        report.fingerprint = "f"
        var (suppressed, counting) = (report, report)
        (suppressed.repeats, counting.repeats) = (1, 2)
        try receive(.init(ended: suppressed, suppressed: .repeated))
        try receive(.init(ended: counting))
        #expect(written == [counting])
        try receive(.init(ended: suppressed, suppressed: .repeated))
        // Of an earlier process.
        try receive(.init(.recovered, counting))
        #expect(written == [counting, counting])
        // The policy has forgotten the fingerprint.
        try receive(.init(ended: report))
        #expect(written == [counting, counting, suppressed, report])
    }

    @Test func aFullNDJSONFileIsRotated() throws {
        let path = scratch.path + "/deep/er/stalls.ndjson"
        let file = NDJSONFile(FixedFile(path), maximumBytes: 3_000, keep: 2)
        try file.check()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        let size = report.jsonLine().count
        let each = 3_000 / size
        for _ in 0..<(each * 4 + 1) { try file.receive(.init(ended: report)) }
        let counts = ["", ".1", ".2", ".3"].map { suffix in
            AtomicFile.read(path + suffix, limit: 1 << 20).map { $0.count / size }
        }
        #expect(counts == [1, each, each, nil])
    }

    @Test func `a descriptor receives a line for each report`() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let description = try NDJSONStream.description(of: ends[1])
        // The app may close its own.
        close(ends[1])
        var sink: (any Sink)? = description.make()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        // Fits into a pipe, so nothing has to read meanwhile.
        for _ in 0..<2 { try sink?.receive(.init(ended: report)) }
        sink = nil
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &bytes, bytes.count)
        close(ends[0])
        let lines = bytes.prefix(max(count, 0)).split(separator: UInt8(ascii: "\n"))
        #expect(try lines.map { try StallReport(jsonData: Array($0)) } == [report, report])
    }

    @Test(
        arguments: [
            ("/dev/stdout", 1), ("/dev/stderr", 2), ("/proc/self/fd/1", 1), ("/dev/fd/7", 7), ("/dev/stdin", nil),
            ("stdout", nil), ("/proc/self/fd/x", nil),
        ] as [(String, Int32?)])
    func `the standard streams can be named`(path: String, descriptor: Int32?) {
        #expect(NDJSONStream.descriptor(named: path) == descriptor)
    }

    @Test func `a stream without a reader is a failed write`() throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        // Closed, the other end may stay open in another test's child for a moment. And a sink's thread blocks SIGPIPE.
        shutdown(ends[1], Int32(SHUT_WR))
        let stream = try NDJSONStream.description(of: ends[1])
        for end in ends { close(end) }
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        let error = WorkerThread.value { () -> Int32? in
            do throws(StallWatchError) { try stream.make().receive(.init(ended: report)) } catch { return error.errno }
            return nil
        }
        #expect(error == EPIPE)
    }

    /// A process that died while writing a line damages no other line.
    @Test func anUnfinishedLineGetsANewline() throws {
        let path = scratch.path + "/stalls.ndjson"
        try AtomicFile.write(Array("{\"schemaVersion\"".utf8), to: path)
        let file = NDJSONFile(FixedFile(path), maximumBytes: 1 << 20, keep: 0)
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        try file.receive(.init(ended: report))
        let lines = try #require(AtomicFile.read(path, limit: 1 << 20)).split(separator: UInt8(ascii: "\n"))
        #expect(try lines.dropFirst().map { try StallReport(jsonData: Array($0)) } == [report])
    }
}
