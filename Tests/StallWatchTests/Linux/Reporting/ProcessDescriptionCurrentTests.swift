import Glibc
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct ProcessDescriptionTests {
    private typealias Description = StallReport.ProcessDescription

    @Test func theCallingProcessIsDescribed() throws {
        let process = Description.current()
        #expect(process.pid == getpid())
        #expect(process.executable == readLink("/proc/self/exe"))
        #expect(process.executable.hasSuffix("/" + process.name))
        #expect(!process.architecture.isEmpty)
        #expect(process.architecture.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
        #expect(!process.kernel.isEmpty)
        #expect(process.bootID?.count == 36)
        let started = try #require(process.startedAt)
        let now = Timestamp(wallClockNanoseconds: wallClockNow())
        #expect(started < now)
        #expect(started.microsecondsSince1970 > now.microsecondsSince1970 - 24 * 3_600_000_000)
    }

    private let systemStat = "cpu 1 2 3\nbtime 1795248000\nprocesses 17\n"

    private func stat(name: String, ticks: String = "12345") -> String {
        "4700 (\(name)) S 1 4700 4700 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 4 0 \(ticks) 1000000 500\n"
    }

    /// A process's name may contain any character, also parentheses and blanks.
    @Test(arguments: ["notes", "a) S 1 (b", ")", "(", "", "two words"])
    func theStartTimeIsReadWhateverTheNameIs(name: String) {
        let ticks = Int64(sysconf(Int32(_SC_CLK_TCK)))
        let started = Description.startTime(stat: stat(name: name), systemStat: systemStat)
        #expect(started?.microsecondsSince1970 == 1_795_248_000_000_000 + 12_345 * 1_000_000 / ticks)
    }

    @Test func withoutOneOfItsSourcesTheStartTimeIsUnknown() {
        let whole = stat(name: "notes")
        #expect(Description.startTime(stat: nil, systemStat: systemStat) == nil)
        #expect(Description.startTime(stat: whole, systemStat: nil) == nil)
        #expect(Description.startTime(stat: whole, systemStat: "cpu 1 2 3\n") == nil)
        #expect(Description.startTime(stat: whole, systemStat: "btime soon\n") == nil)
        #expect(Description.startTime(stat: "4700 notes S 1", systemStat: systemStat) == nil)
        #expect(Description.startTime(stat: "4700 (notes) S 1 2 3", systemStat: systemStat) == nil)
        #expect(Description.startTime(stat: stat(name: "notes", ticks: "x"), systemStat: systemStat) == nil)
    }
}
