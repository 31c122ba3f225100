import Glibc
import LinuxSupport
import StackCapture

/// The children of this process whose ends Foundation waits for, as its threads and sockets show them.
///
/// `Process.waitUntilExit()` runs the thread's loop; other threads notice the end (Process.swift and CFSocket.c of
/// swift-corelibs-foundation). `Process.run()` makes a pair of sockets, leaves one to the child, and closes its own copy of
/// that one. One thread polls the other sockets of all children with select(2), beside a pair of its own: of Unix sockets, or
/// of datagram sockets that are connected to each other over loopback. When a child's socket is closed, a second thread waits
/// for that child with wait4(2). So the awaited child has the other end of such a socket open, or a thread waits for it.
struct FoundationChildren: Hashable, Sendable {
    static let maximumThreads = 256
    /// The largest number of a descriptor that is read of a call, plus one.
    static let maximumDescriptors: UInt32 = 4_096

    /// The inodes of the sockets that threads poll of which this process has made both ends.
    var sockets: [UInt32] = []
    /// Whether the thread that polls them polls a pair over loopback, too.
    var hasLoopbackPair = false
    /// The children that threads wait for.
    var awaited: [Int32] = []

    /// The descriptors that a call of select(2) waits to read; none of another call, and `nil` above the limit.
    static func polled(by call: SystemCall, _ memory: any MemoryReading) -> [Int32]? {
        let count = UInt32(truncatingIfNeeded: call.argument(0))
        guard ["select", "pselect6"].contains(call.name), count > 0, call.argument(1) != 0 else { return [] }
        // Words of 64 bits, little-endian on both architectures. The kernel writes to them when the call returns.
        guard count <= maximumDescriptors,
            let bytes = memory.bytes(at: call.argument(1), count: Int(count + 63) / 64 * 8)
        else { return nil }
        return (0..<Int32(count)).filter { bytes[Int($0 / 8)] >> UInt8($0 % 8) & 1 == 1 }
    }

    /// Returns the children of which one is awaited, from the processes that have the other end of each socket open; `nil`
    /// if that is not known.
    func candidates(_ holders: [[Int32]], own: Int32, isChild: (Int32) -> Bool) -> [Int32]? {
        // A pair with both ends here shows that the thread that polls was seen.
        guard hasLoopbackPair || holders.contains(where: { $0.contains(own) }) else { return nil }
        let children = holders.filter { !$0.contains(own) }.map { $0.filter(isChild) }
        // A child that has ended may have left its socket to a process that is no child.
        return children.contains([]) ? nil : Set(children.joined()).union(awaited).sorted()
    }
}

extension FoundationChildren {
    /// Reads what the threads of this process wait for; `nil` above the limits.
    init?(_ memory: any MemoryReading, threads: [Int32] = ThreadIdentity.all()) {
        guard threads.count <= Self.maximumThreads else { return nil }
        for thread in threads {
            guard let text = readSmallFile("/proc/self/task/\(thread)/syscall"),
                let call = ThreadActivity(systemCallFile: text)?.call
            else { continue }
            if ["wait4", "waitid"].contains(call.name), let child = call.awaitedChild { awaited.append(child) }
            guard let polled = Self.polled(by: call, memory) else { return nil }
            if polled.contains(where: Self.isConnectedOverLoopback) { hasLoopbackPair = true }
            sockets += polled.filter { UnixSocketPeer.process(of: $0) == getpid() }.compactMap {
                readLink("/proc/self/fd/\($0)").flatMap(UnixSocketPeer.number(inLink:)).flatMap { UInt32($0) }
            }
        }
        sockets.sort()
    }

    /// Whether a datagram socket is connected, and both ends are at 127.0.0.1.
    static func isConnectedOverLoopback(_ descriptor: Int32) -> Bool {
        var (type, length): (UInt32, socklen_t) = (0, socklen_t(MemoryLayout<UInt32>.size))
        guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0, type == SOCK_DGRAM.rawValue else {
            return false
        }
        return [getsockname, getpeername].allSatisfy { end in
            SocketName.address(of: descriptor, by: end)?.hasPrefix("127.0.0.1:") == true
        }
    }
}
