import Testing

@testable import StallReports
@testable import StallWatchCLI

@Suite struct ToolCapabilitiesTests {
    @Test func `a blocked thread is read from its system call and a count`() {
        #expect(ToolCapabilities.read([.syscall: .works(), .schedstat: .works()]) == .works())
        #expect(ToolCapabilities.read([.syscall: .works(), .schedstat: .missing(), .status: .works()]) == .works())
        #expect(
            ToolCapabilities.read([.syscall: .missing(), .schedstat: .works()])
                == .missing("/proc/…/syscall is missing"))
        #expect(
            ToolCapabilities.read([.syscall: .works(), .schedstat: .missing(), .status: .missing()])
                == .missing("/proc/…/schedstat and /proc/…/status are missing"))
    }
}
