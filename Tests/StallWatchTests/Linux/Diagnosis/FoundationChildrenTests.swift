import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// The children that Foundation may wait for, from sockets and calls that the test makes up or knows.
@Suite struct FoundationChildrenTests {
    private static let own: Int32 = 100

    /// Processes 1 to 9 are children.
    private func candidates(_ holders: [[Int32]], awaited: [Int32] = []) -> [Int32]? {
        FoundationChildren(awaited: awaited).candidates(holders, own: Self.own) { $0 < 10 }
    }

    @Test func `the only child with such a socket is the awaited one`() {
        #expect(candidates([[100], [7]]) == [7])
        #expect(candidates([[7], [100]]) == [7])
        #expect(candidates([[100], [7, 50, 51]]) == [7], "its own children have inherited the socket")
        #expect(candidates([[100]], awaited: [7]) == [7], "it has closed the socket")
        #expect(candidates([[100], [7]], awaited: [7]) == [7])
    }

    @Test func `of several children none is named`() {
        #expect(candidates([[100], [7], [3]]) == [3, 7])
        #expect(candidates([[100], [7, 3]]) == [3, 7])
        #expect(candidates([[100], [7]], awaited: [3]) == [3, 7])
        #expect(candidates([[100]]) == [], "all have ended")
    }

    /// As the poller of corelibs Foundation has on Linux.
    @Test func `a pair over loopback shows the thread that polls, too`() throws {
        let one = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let other = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { [one, other].forEach { close($0) } }
        #expect(!FoundationChildren.isConnectedOverLoopback(one))
        for (socket, end) in [(one, other), (other, one)] {
            var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), INADDR_LOOPBACK.bigEndian)
            try withUnsafeMutablePointer(to: &address) {
                // A sockaddr_in is a sockaddr.
                try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    if socket == one { try #require(bind(end, $0, length) == 0 && bind(socket, $0, length) == 0) }
                    try #require(getsockname(end, $0, &length) == 0 && connect(socket, $0, length) == 0)
                }
            }
        }
        #expect(FoundationChildren.isConnectedOverLoopback(one) && FoundationChildren.isConnectedOverLoopback(other))
        #expect(FoundationChildren(hasLoopbackPair: true).candidates([[7]], own: Self.own) { $0 < 10 } == [7])
        #expect(FoundationChildren(hasLoopbackPair: true).candidates([[]], own: Self.own) { $0 < 10 } == nil)
    }

    @Test func `what was not seen leaves the child unknown`() {
        #expect(candidates([[7]]) == nil, "the thread that polls was not seen")
        #expect(candidates([], awaited: [7]) == nil)
        #expect(candidates([[100], [7], []]) == nil, "a child does not show its descriptors")
        #expect(candidates([[100], [7], [50]]) == nil, "a child has ended, and its own child has the socket")
    }

    /// A set of descriptors at address 0x1000.
    private struct Descriptors: MemoryReading {
        var bytes: [UInt8]

        func bytes(at address: UInt64, count: Int) -> [UInt8]? {
            address == 0x1000 && count <= bytes.count ? Array(bytes.prefix(count)) : nil
        }
    }

    private func polled(
        _ name: String, _ count: UInt64, at address: UInt64 = 0x1000, _ bytes: [UInt8]
    ) throws -> [Int32]? {
        let call = SystemCall(
            number: try #require(SystemCallNames.current.number(of: name)), arguments: [count, address, 0, 0, 0, 0],
            stackPointer: 0, programCounter: 0)
        return FoundationChildren.polled(by: call, Descriptors(bytes: bytes))
    }

    @Test func `the descriptors of select are its bits`() throws {
        let bytes: [UInt8] = [0b1000_0001, 0, 0, 0, 0, 0, 0, 0b10, 0b1, 0xff, 0, 0, 0, 0, 0, 0]
        #expect(try polled("pselect6", 65, bytes) == [0, 7, 57, 64], "the 65th is the last")
        #expect(try polled("pselect6", 8, bytes) == [0, 7])
        #expect(try polled("pselect6", 0, bytes) == [], "it only waits for a time")
        #expect(try polled("pselect6", 8, at: 0, bytes) == [], "it waits to write")
        #expect(try polled("pselect6", 8, at: 0x2000, bytes) == nil, "the set cannot be read")
        #expect(try polled("pselect6", 1 << 20, bytes) == nil)
        #expect(try polled("ppoll", 65, bytes) == [])
    }

    @Test func `a thread that polls a pair of this process is found`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let end = ends[0]
        try #require(end < 1_024, "select(2) takes no more")
        let link = try #require(readLink("/proc/self/fd/\(end)"))
        let inode = try #require(UInt32(link.filter(\.isNumber)))
        let id = Atomic<Int32>(0)
        let poller = try WorkerThread(name: "test-select") {
            id.store(callingThread, ordering: .releasing)
            var words = [UInt64](repeating: 0, count: 16)
            words[Int(end / 64)] = 1 << UInt64(end % 64)
            words.withUnsafeMutableBytes { set in
                _ = select(end + 1, set.baseAddress?.assumingMemoryBound(to: fd_set.self), nil, nil, nil)
            }
        }
        func found() -> FoundationChildren? {
            FoundationChildren(GuardedMemory(), threads: [id.load(ordering: .acquiring)])
        }
        #expect(eventually { found() == FoundationChildren(sockets: [inode]) })
        close(ends[1])
        poller.join()
        #expect(found() == FoundationChildren())
        close(end)
        let threads = [Int32](repeating: 0, count: FoundationChildren.maximumThreads + 1)
        #expect(FoundationChildren(GuardedMemory(), threads: threads) == nil)
    }
}
