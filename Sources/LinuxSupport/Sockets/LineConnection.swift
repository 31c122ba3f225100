import Glibc

/// The connection of a client whose request is answered later.
///
/// It is closed with the last reference.
package final class LineConnection: Sendable {
    private let descriptor: Int32

    /// Takes over a descriptor, which must not block.
    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Whether the client still waits for its answer.
    ///
    /// A client that has closed only its sending end counts as gone.
    package var isOpen: Bool {
        var polled = pollfd(fd: descriptor, events: Self.hangUp, revents: 0)
        return poll(&polled, 1, 0) == 0
    }

    /// Sends the answer, in bounded time.
    package func send(_ bytes: [UInt8]) {
        UnixSocket.send(bytes, to: descriptor, until: monotonicNow() &+ LineServer.answerTime)
    }

    /// POLLRDHUP of poll(2), which Glibc's module does not show.
    private static let hangUp: Int16 = 0x2000
}
