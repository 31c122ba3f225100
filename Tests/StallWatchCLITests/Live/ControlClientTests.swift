import Testing

@testable import StallWatchCLI

@Suite struct ControlClientTests {
    private static let table = """
        Num       RefCount Protocol Flags    Type St Inode Path
        0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/a b/stallwatch-7.socket
        0000000000000000: 00000002 00000000 00010000 0001 01 102 /run/other.socket
        0000000000000000: 00000003 00000000 00000000 0001 03 103
        0000000000000000: 00000002 00000000 00010000 0001 01 104 @stallwatch-7.socket
        """

    @Test func `the path belongs to a socket of the process`() {
        #expect(ControlClient.controlPath(in: Self.table, ofSockets: ["101"]) == "/run/a b/stallwatch-7.socket")
        #expect(ControlClient.controlPath(in: Self.table, ofSockets: ["102", "103", "104"]) == nil)
    }

    @Test func `only a link to a socket has a number`() {
        #expect(ControlClient.socketNumber("socket:[4711]") == "4711")
        #expect(ControlClient.socketNumber("pipe:[4711]") == nil)
    }
}
