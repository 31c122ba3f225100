internal import CLinux
import Glibc
import Synchronization

/// A server for a Unix socket: reads one line of each client, answers and closes the connection.
///
/// It has one thread of its own and uses neither Dispatch nor Swift concurrency, so it answers while both are stuck. Its
/// buffers have a fixed size. It serves only root and the user of this process. An answer that takes long is given by
/// another thread, so that other clients need not wait for it.
///
/// Safe to share: the properties are constants. Only the server's thread uses its connections.
package final class LineServer: Sendable {
    /// The longest request in bytes, with its line feed.
    package static let maximumRequestBytes = 256
    /// The number of connections; a further one replaces the oldest, so that silent clients keep no other out.
    static let maximumClients = 8
    /// The longest time until a client has sent its request, in nanoseconds.
    static let requestTime: UInt64 = 1_000_000_000
    /// The longest time until a client has received its answer, in nanoseconds.
    static let answerTime: UInt64 = 2_000_000_000
    private static let backlog: Int32 = 16

    package let path: String
    private let place: FixedFile
    let listener: KeptDescriptor
    /// The two ends of the pipe that ends the thread.
    let stopReader: KeptDescriptor
    let stopWriter: KeptDescriptor
    private let isStopping = Atomic<Bool>(false)
    private let answer: @Sendable ([UInt8]) -> Response
    /// The user whose connections are accepted, beside root.
    private let user = geteuid()

    package enum Response: Sendable {
        case bytes([UInt8])
        /// The closure takes over the connection and answers later; it must not wait.
        case later(@Sendable (LineConnection) -> Void)
    }

    /// Creates the socket, whose clients wait until ``run()``; `answer` gets a request on the server's thread.
    package init(path: String, answer: @escaping @Sendable ([UInt8]) -> Response) throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        let failure = clinux_pipe(&ends)
        guard failure == 0 else {
            throw SystemError("no pipe can be created: raise the limit on open files (ulimit -n)", errno: failure)
        }
        let (reader, writer) = (KeptDescriptor(ends[0]), KeptDescriptor(ends[1]))
        do {
            listener = try UnixSocket.listen(at: path, backlog: Self.backlog)
        } catch {
            for end in [reader, writer] { end.close() }
            throw error
        }
        (stopReader, stopWriter) = (reader, writer)
        (self.path, place) = (path, FixedFile(path))
        self.answer = answer
    }

    deinit {
        for descriptor in [listener, stopReader, stopWriter] { descriptor.close() }
    }

    /// Makes ``run()`` return; never waits for the socket's file system.
    package func end() {
        isStopping.store(true, ordering: .releasing)
        var byte: UInt8 = 0
        if stopWriter.isOpen {
            write(stopWriter.number, &byte, 1)
        } else {
            // The program has closed the pipe. A connection wakes the thread, too. It has a thread of its own, to wait
            // for no other file system than the socket's.
            _ = try? WorkerThread(name: "stallwatch-ctl") { [path] in
                if case .connected(let descriptor) = UnixSocket.connect(to: path) { close(descriptor) }
            }
        }
    }

    /// Removes the socket, also if its path leads elsewhere by now.
    package func remove() { try? AtomicFile.remove(place.name, in: place.directory) }

    /// A client that has not sent its whole request yet.
    private struct Client {
        let connection: KeptDescriptor
        let deadline: UInt64
        var request: [UInt8] = []
    }

    /// Serves clients on the calling thread until ``end()``, or until the program has closed the socket.
    package func run() {
        var clients: [Client] = []
        defer { for client in clients { client.connection.close() } }
        while true {
            let descriptors = [stopReader.number, listener.number] + clients.map(\.connection.number)
            var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            let timeout = clients.map(\.deadline).min().map(UnixSocket.milliseconds) ?? -1
            guard poll(&polled, nfds_t(polled.count), timeout) >= 0 else {
                guard errno == EINTR || errno == EAGAIN || errno == ENOMEM else { return }
                if errno != EINTR { nap() }
                continue
            }
            if polled[0].revents != 0 || isStopping.load(ordering: .acquiring) { return }
            // The number may be the app's by now: its connections are not to be accepted.
            if polled[1].revents != 0, !listener.isOpen { return }
            let now = monotonicNow()
            var waiting: [Client] = []
            for (index, var client) in clients.enumerated() {
                let isReady = polled[index + 2].revents != 0
                switch isReady ? serve(&client) : now < client.deadline ? .waits : .isDone {
                case .waits: waiting.append(client)
                case .isDone: client.connection.close()
                case .isTakenOver: break
                }
            }
            clients = waiting
            if polled[1].revents != 0, let client = accept(at: now) {
                if clients.count == Self.maximumClients { clients.removeFirst().connection.close() }
                clients.append(client)
            }
        }
    }

    /// Accepts a connection; `nil` if there is none or it is another user's.
    private func accept(at now: UInt64) -> Client? {
        let descriptor = clinux_accept(listener.usable)
        guard descriptor >= 0 else {
            // Without a free descriptor the connection stays, and poll(2) would return at once.
            if errno != EINTR, errno != EAGAIN { usleep(100_000) }
            return nil
        }
        guard let peer = UnixSocket.peer(of: descriptor)?.user, peer == 0 || peer == user else {
            close(descriptor)
            return nil
        }
        return Client(connection: KeptDescriptor(descriptor), deadline: now &+ Self.requestTime)
    }

    private enum ConnectionFate {
        /// The client has not sent its whole request.
        case waits
        case isDone
        case isTakenOver
    }

    private func serve(_ client: inout Client) -> ConnectionFate {
        var buffer = [UInt8](repeating: 0, count: Self.maximumRequestBytes - client.request.count)
        let count = recv(client.connection.usable, &buffer, buffer.count, 0)
        guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) ? .waits : .isDone }
        client.request += buffer.prefix(count)
        let line = client.request.prefix { $0 != UInt8(ascii: "\n") }
        if line.count == client.request.count, client.request.count < Self.maximumRequestBytes { return .waits }
        // A request without an end is passed on as it is. The answer then says that it is no request.
        switch answer(Array(line)) {
        case .bytes(let bytes):
            UnixSocket.send(bytes, to: client.connection, until: monotonicNow() &+ Self.answerTime)
            return .isDone
        case .later(let take):
            take(LineConnection(client.connection))
            return .isTakenOver
        }
    }
}

/// The connection of a client whose request is answered later, closed with the last reference.
package final class LineConnection: Sendable {
    private let connection: KeptDescriptor

    /// Takes over a descriptor, which must not block.
    init(_ connection: KeptDescriptor) { self.connection = connection }

    deinit { connection.close() }

    /// Sends the answer, in bounded time.
    package func send(_ bytes: [UInt8]) {
        UnixSocket.send(bytes, to: connection, until: monotonicNow() &+ LineServer.answerTime)
    }
}
