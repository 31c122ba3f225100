import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport

@Suite struct CPUQuotaTests {
    @Test func throttledTimeIsInNanoseconds() {
        #expect(CPUQuota.throttledTime(ByteCursor("nr_periods 0\nthrottled_time 524373663\n")) == 524_373_663)
        #expect(CPUQuota.throttledTime(ByteCursor("usage_usec 1\nthrottled_usec 12\n")) == 12_000)
        #expect(CPUQuota.throttledTime(ByteCursor("usage_usec 1\n")) == nil)
    }

    @Test func `the groups of a thread are read now and then`() {
        let reads = Atomic<Int>(0)
        var quota = CPUQuota(groups: { _ in
            reads.wrappingAdd(1, ordering: .relaxed)
            return ""
        })
        let (start, age) = (2 * CPUQuota.longestAge, CPUQuota.longestAge)
        for time in start..<start + 100 { _ = quota.throttled(thread: 1, at: time) }
        #expect(reads.load(ordering: .relaxed) == 1)
        _ = quota.throttled(thread: 2, at: start + 100)
        #expect(reads.load(ordering: .relaxed) == 2)
        _ = quota.throttled(thread: 2, at: start + 99 + age)
        _ = quota.throttled(thread: 2, at: start + 100 + age)
        #expect(reads.load(ordering: .relaxed) == 3)
    }

    @Test func `the statistics of groups are read once for all threads`() {
        let throttled = ThrottledTime()
        var reads: UInt64 = 0
        func read(_ groups: String, at time: UInt64) -> UInt64 {
            throttled.of(groups, at: time) {
                reads += 1
                return reads
            }
        }
        for time: UInt64 in 100..<200 { #expect(read("0::/a\n", at: time) == 1) }
        #expect(read("0::/b\n", at: 200) == 2)
        #expect(read("0::/b\n", at: 199 + ThrottledTime.longestAge) == 2)
        #expect(read("0::/b\n", at: 200 + ThrottledTime.longestAge) == 3)
    }

    @Test func `a quota is a number of processors`() {
        #expect(CPUQuota.limit("20000 100000\n") == 0.2)
        #expect(CPUQuota.limit("150000\n 100000\n") == 1.5)
        let none = ["max 100000\n", "-1\n 100000\n", "", "100000", "20000 0\n"]
        #expect(none.compactMap { CPUQuota.limit($0) } == [])
    }

    @Test func quotasOfAncestorGroupsAreRead() {
        #expect(
            CPUQuota.candidates("3:cpu,cpuacct:/a/b\n2:memory:/m\n") == [
                "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
            ]
        )
        #expect(CPUQuota.candidates("0::/\n") == ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"])
        let deep = CPUQuota.candidates("3:cpu:/1/2/3/4/5/6/7/8/9/10\n")
        #expect(deep.first == "/sys/fs/cgroup/cpu/1/2/3/4/5/6/7/8/9/10/cpu.stat")
        #expect(deep.count == CPUQuota.maximumDepth)
    }
}

@Suite struct CPUStealTests {
    private static let second: UInt64 = 1_000_000_000

    /// A reading of two CPUs that have lost `first` and `second` ticks of 10 ms.
    private func steal(_ first: Int, _ second: Int, at seconds: UInt64) -> CPUSteal {
        let text = """
            cpu  7000 72 688 64942 986 0 182 30 4 5
            cpu0 3500 36 344 32471 493 0 91 \(first) 2 3
            cpu12 3500 36 344 32471 493 0 91 \(second) 2 2
            intr 123 45 0 0
            ctxt 1
            """
        return CPUSteal(text, at: seconds * Self.second)
    }

    @Test func longestIsTheTimeOfTheMostAffectedCPU() {
        #expect(steal(10, 20, at: 1).longest(until: steal(40, 30, at: 3)) == 300_000_000)
        #expect(steal(10, 20, at: 1).longest(until: steal(10, 20, at: 3)) == 0)
    }

    @Test func shareIsRelativeToAllCPUs() {
        #expect(steal(10, 20, at: 1).share(until: steal(40, 30, at: 3)) == 0.1)
        #expect(steal(10, 20, at: 1).share(until: steal(10, 20, at: 1)) == 0)
    }

    /// A CPU that went offline and online again restarts its count.
    @Test func aDecreasingCountIsNotStolenTime() {
        #expect(steal(50, 20, at: 1).longest(until: steal(0, 30, at: 3)) == 100_000_000)
    }

    /// Sandboxes provide incomplete replacements of the file.
    @Test(arguments: ["", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4\n", "cpu 1\ncpus\n", "intr 5\n"])
    func aMissingCountIsNotStolenTime(text: String) {
        let before = CPUSteal(text, at: 0)
        #expect(before.longest(until: steal(10, 20, at: 1)) == 0)
        #expect(before.share(until: steal(10, 20, at: 1)) == 0)
        #expect(steal(10, 20, at: 0).longest(until: before) == 0)
    }

    @Test func theFileOfThisMachineIsParsed() {
        let before = CPUSteal()
        let moreOnEach = CPUSteal(
            (readSmallFile("/proc/stat") ?? "").split(separator: "\n").map { line in
                guard line.hasPrefix("cpu") else { return String(line) }
                var words = line.split(separator: " ").map(String.init)
                words[8] = String((Int(words[8]) ?? 0) + 1_000_000)
                return words.joined(separator: " ")
            }.joined(separator: "\n"), at: before.time + Self.second)
        let longest = before.longest(until: moreOnEach)
        #expect(longest >= 10_000 * Self.second && longest < 10_010 * Self.second)
    }
}

@Suite struct PressureTests {
    @Test func theTenSecondAverageIsRead() {
        let text =
            "some avg10=6.44 avg60=5.83 avg300=6.07 total=51403076\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        #expect(Pressure.average(in: text) == 6.44)
        #expect(Pressure.average(in: "") == nil)
    }
}
