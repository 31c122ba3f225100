import CStalls
import Dispatch
import Foundation
import Glibc

/// A child process for which the main thread waits.
final class PeerProcess: Sendable {
    let id: Int32

    /// Starts a child that does something for `duration` from now on, and that the report has to name.
    init(
        _ kind: stalls_peer_kind, descriptor: Int32 = -1, path: String? = nil, in context: ScenarioContext,
        for duration: Duration
    ) throws(NotAvailable) {
        id = stalls_start_peer(kind, descriptor, path, UInt32(duration.milliseconds))
        if id < 0 { throw NotAvailable(reason: "no child can be made") }
        context.expectPeer(id)
    }

    func finish() {
        while waitpid(id, nil, 0) < 0, errno == EINTR {}
    }
}

/// A file that a child has locked.
final class LockFile: Sendable {
    let descriptor: Int32
    let peer: PeerProcess

    init(_ kind: stalls_peer_kind, in context: ScenarioContext) throws(NotAvailable) {
        let path = "\(context.directory)/stallwatch-locked-\(getpid())"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        // The child has opened the file when this returns.
        defer { unlink(path) }
        peer = try PeerProcess(kind, path: path, in: context, for: context.stall)
    }

    deinit { close(descriptor) }
}

/// A connection with unsent data, which a thread named `late-reader` reads after some time.
final class UnsentData: Sendable {
    /// The end whose close(2) waits until then.
    let sender: Int32

    init(for duration: Duration) throws(NotAvailable) {
        var ends: [Int32] = [-1, -1]
        guard stalls_make_unsent_data(&ends) else { throw NotAvailable(reason: "no connection can be made") }
        sender = ends[0]
        let reader = ends[1]
        NamedThread.start("late-reader", after: duration) { stalls_read_all(reader) }
    }
}

/// A pipe or a socket to a child, of which this process has one end.
final class PeerConnection: Sendable {
    let descriptor: Int32
    let peer: PeerProcess

    /// Makes two connected descriptors with `make`, and leaves the second one to a child.
    init(
        _ kind: stalls_peer_kind, in context: ScenarioContext, for duration: Duration,
        _ make: (inout [Int32]) -> Int32
    ) throws(NotAvailable) {
        var ends: [Int32] = [-1, -1]
        guard make(&ends) == 0 else { throw NotAvailable(reason: "no connection can be made") }
        descriptor = ends[0]
        defer { close(ends[1]) }
        peer = try PeerProcess(kind, descriptor: ends[1], in: context, for: duration)
    }
}

/// A `stdout` that is a pipe to a child that reads it late.
///
/// A thread named `printer` prints more than the pipe takes, and so keeps the stream's lock.
///
/// `@unchecked Sendable`: nothing changes after `init`, and one scenario at a time uses the stream.
final class BlockedOutput: @unchecked Sendable {
    private let peer: PeerProcess
    /// The stream before, which C made.
    private let before: UnsafeMutableRawPointer
    private let isPrinted = DispatchSemaphore(value: 0)

    init(in context: ScenarioContext) throws(NotAvailable) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw NotAvailable(reason: "no pipe can be made") }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        defer { close(readEnd) }
        peer = try PeerProcess(STALLS_PEER_READER, descriptor: readEnd, in: context, for: context.stall)
        guard let before = stalls_replace_stdout(writeEnd) else { throw NotAvailable(reason: "no stream can be made") }
        self.before = before
        NamedThread.start("printer") { [isPrinted] ready in
            stalls_lock_stdout()
            ready()
            // The capacity of a pipe is 65,536 bytes (pipe(7)).
            stalls_print_much(100_000)
            stalls_unlock_stdout()
            isPrinted.signal()
        }
    }

    /// Makes the program's own `stdout` its `stdout` again.
    func restore() {
        isPrinted.wait()
        stalls_restore_stdout(before)
        peer.finish()
    }
}
