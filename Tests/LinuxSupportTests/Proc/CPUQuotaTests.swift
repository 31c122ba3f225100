import Testing

@testable import LinuxSupport

@Suite struct CPUQuotaTests {
    @Test func throttledTimeIsInNanoseconds() {
        #expect(CPUQuota.throttledTime(ByteCursor("nr_periods 0\nthrottled_time 524373663\n")) == 524_373_663)
        #expect(CPUQuota.throttledTime(ByteCursor("usage_usec 1\nthrottled_usec 12\n")) == 12_000)
        #expect(CPUQuota.throttledTime(ByteCursor("usage_usec 1\n")) == nil)
    }

    @Test func quotasOfAncestorGroupsAreRead() {
        #expect(
            CPUQuota.candidates("3:cpu,cpuacct:/a/b\n2:memory:/m\n") == [
                "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
            ]
        )
        #expect(
            CPUQuota.candidates("0::/\n") == ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"]
        )
    }
}
