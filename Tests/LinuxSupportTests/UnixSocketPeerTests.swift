import Glibc
import Testing

@testable import LinuxSupport

@Suite struct UnixSocketPeerTests {
    private func message(type: UInt8 = 20, inode: UInt8 = 5, length: UInt8 = 48, attributes: [UInt8]) -> [UInt8] {
        [length, 0, 0, 0, type, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0] + [1, 1, 1, 0, inode, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]
            + attributes
    }

    /// UNIX_DIAG_SHUTDOWN with a byte and padding, then UNIX_DIAG_PEER.
    private let attributes: [UInt8] = [5, 0, 6, 0, 0, 0, 0, 0, 8, 0, 2, 0, 0x39, 0x30, 0, 0]

    @Test func `the peer is the attribute of that number`() {
        #expect(UnixSocketPeer.peer(in: message(attributes: attributes), of: 5) == 12345)
        #expect(UnixSocketPeer.peer(in: message(length: 40, attributes: attributes), of: 5) == nil)
    }

    @Test func `another answer has no peer`() {
        #expect(UnixSocketPeer.peer(in: message(type: 2, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(inode: 6, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(length: 60, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(length: 8, attributes: attributes), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: message(attributes: [0, 0, 2, 0] + attributes.dropFirst(4)), of: 5) == nil)
        #expect(UnixSocketPeer.peer(in: [], of: 5) == nil)
        for count in 0..<48 {
            let cut = Array(message(attributes: attributes).prefix(count))
            #expect(UnixSocketPeer.peer(in: cut, of: 5) == nil)
        }
    }

    @Test func `the ends of a socket pair are each other's peers`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(UnixSocketPeer.process(of: ends[0]) == getpid())
        let inodes = ends.compactMap { readLink("/proc/self/fd/\($0)").flatMap { UInt32($0.dropFirst(8).dropLast()) } }
        let peer = UnixSocketPeer.inode(ofPeerOf: inodes[0])
        #expect(peer == nil || peer == inodes[1], "the kernel may lack unix_diag")
    }

    @Test func `other descriptors have no peer`() {
        let single = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let inet = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer {
            close(single)
            close(inet)
        }
        #expect(UnixSocketPeer.process(of: single) == nil)
        #expect(UnixSocketPeer.process(of: inet) == nil)
        #expect(!UnixSocketPeer.isUnix(inet) && UnixSocketPeer.isUnix(single))
        #expect(UnixSocketPeer.process(of: 1_000_000) == nil)
    }
}
