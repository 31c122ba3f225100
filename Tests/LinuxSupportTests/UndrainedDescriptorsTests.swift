import Testing

@testable import LinuxSupport

/// Lines of an epoll instance's file in /proc/self/fdinfo.
@Suite struct EpollEntryTests {
    @Test func libdispatchArmsAnEntryAndTheKernelDisarmsIt() {
        let armed = EpollEntry(line: "tfd:       22 events: 40004019 data:     7f8be8000b70  pos:0 ino:80751 sdev:f")
        #expect(armed?.descriptor == 22)
        #expect(armed?.isArmed == true)
        let disarmed = EpollEntry(line: "tfd:       22 events: 40004018 data:     7f8be8000b70  pos:0 ino:80751 sdev:f")
        #expect(disarmed?.descriptor == 22)
        #expect(disarmed?.isArmed == false)
    }

    @Test(arguments: [
        "tfd:       20 events:     4019 data:                1  pos:0 ino:40e sdev:10",
        "tfd:        3 events: c0000019 data:                3  pos:0 ino:40e sdev:10",
        "pos:\t0", "tfd:", "tfd: x events: 40000001", "tfd: 7 events: x", "",
    ])
    func anotherEntryIsNone(line: String) {
        #expect(EpollEntry(line: line[...]) == nil)
    }
}
