import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ServiceNotifierTests {
    @Test(arguments: [false, true]) func `a message is one datagram`(isAbstract: Bool) throws {
        let receiver = try DatagramReceiver(isAbstract: isAbstract)
        let notifier = try ServiceNotifier(socket: receiver.name)
        #expect(notifier.send("READY=1\nSTATUS=works") == nil)
        #expect(notifier.send("WATCHDOG=1") == nil)
        #expect(receiver.next() == "READY=1\nSTATUS=works")
        #expect(receiver.next() == "WATCHDOG=1")
        #expect(receiver.next() == nil)
    }

    @Test func `a full queue is an error and no wait`() throws {
        let receiver = try DatagramReceiver()
        let notifier = try ServiceNotifier(socket: receiver.name)
        var sent = 0
        var failure: Int32?
        // The queue's length is net.unix.max_dgram_qlen, 10 or some hundred.
        let begun = monotonicNow()
        while failure == nil, sent < 100_000 {
            failure = notifier.send("WATCHDOG=1")
            if failure == nil { sent += 1 }
        }
        #expect(failure == EAGAIN)
        #expect(monotonicNow() - begun < 5_000_000_000)
        for _ in 0..<sent { #expect(receiver.next() == "WATCHDOG=1") }
        #expect(notifier.send("READY=1") == nil)
        #expect(receiver.next() == "READY=1")
    }

    @Test func `a manager that is gone is an error and no signal`() throws {
        let directory = try TemporaryDirectory()
        let notifier = try ServiceNotifier(socket: directory.path("missing"))
        #expect(notifier.send("READY=1") == ENOENT)
    }

    @Test(arguments: ["", "@", "relative/path", "vsock:2:1", "/" + String(repeating: "x", count: 107)])
    func `an address of another kind is refused`(socket: String) {
        #expect(throws: SystemError.self) { try ServiceNotifier(socket: socket) }
    }

    @Test func `the longest path is 107 bytes`() throws {
        _ = try ServiceNotifier(socket: "/" + String(repeating: "x", count: 106))
        _ = try ServiceNotifier(socket: "@" + String(repeating: "x", count: 107))
    }

    @Test(
        arguments: [
            ("2000000", nil, 1_000_000_000), ("3", nil, 1_500), ("2000000", "4700", 1_000_000_000),
            ("2000000", "4701", nil), ("2000000", "", nil), ("0", nil, nil), ("-1", nil, nil), ("soon", nil, nil),
            ("18446744073709551615", nil, nil), (nil, nil, nil),
        ] as [(String?, String?, UInt64?)])
    func `the period is half of what the manager expects`(microseconds: String?, process: String?, period: UInt64?) {
        let found = ServiceNotifier.watchdogPeriod(microseconds: microseconds, process: process, own: 4_700)
        #expect(found == period)
    }

    @Test func `a status is one short line`() {
        #expect(ServiceNotifier.statusLine("a\nREADY=1\r\nb") == "a READY=1 b")
        let long = ServiceNotifier.statusLine(String(repeating: "ä", count: 600))
        #expect(long == String(repeating: "ä", count: 500))
    }
}
