import Glibc
import LinuxSupport
import StallReports

/// What a monitor creates on a file system that may hang.
enum FileCreation {
    /// The longest wait of the program's thread for the file system, in nanoseconds.
    static let patience: UInt64 = 2_000_000_000

    /// The errors that do not last: a full disk, a file that another process keeps locked, and no descriptor left.
    private static let passing: Set<Int32> = [ENOSPC, EDQUOT, EWOULDBLOCK, EMFILE, ENFILE, EINTR]

    /// Runs `body` on a thread of its own; returns `nil` if the file system has not answered in time, or for an error
    /// that does not last: the monitor is for all of the program's life.
    static func inTime<Value: Sendable>(
        within patience: UInt64 = patience, _ body: @escaping @Sendable () throws(StallWatchError) -> Value
    ) throws(StallWatchError) -> Value? {
        typealias Answer = Result<Value, StallWatchError>
        let call = try? LateCall<Answer>(name: "stallwatch-open") { _ in
            do throws(StallWatchError) { return .success(try body()) } catch { return .failure(error) }
        }
        do throws(StallWatchError) {
            guard let call else { return try body() }
            return try call.value(until: monotonicNow() &+ patience)?.get()
        } catch  where passing.contains(error.errno ?? 0) {
            return nil
        }
    }

    /// Returns a directory, made if it is missing; it is opened later if the file system has not answered in time.
    static func directory(at path: String) -> FixedDirectory {
        let made = try? inTime { () throws(StallWatchError) in
            mkdir(pathBytes(path), 0o700)
            return FixedDirectory(path)
        }
        return made ?? FixedDirectory(path, isOpened: false)
    }

    /// Returns a file's place, whose directory is opened later if the file system has not answered in time.
    static func place(of path: String) -> FixedFile {
        (try? inTime { () throws(StallWatchError) in FixedFile(path) }) ?? FixedFile(path, isOpened: false)
    }
}

/// A store that could not be opened in time, or just then, when the monitor was created: it is opened on the sink's own
/// thread.
final class LateStore: Sink {
    private let open: () throws(StallWatchError) -> any Sink
    private var store: (any Sink)?

    init(open: @escaping () throws(StallWatchError) -> any Sink) { self.open = open }

    /// Returns the sink of a store that was opened in time, or one that opens it.
    static func sink<Store>(
        of opened: Store?, or open: @escaping () throws(StallWatchError) -> Store,
        making make: @escaping (Store) -> any Sink
    ) -> any Sink {
        if let opened { return make(opened) }
        return LateStore { () throws(StallWatchError) in make(try open()) }
    }

    private func opened() throws(StallWatchError) -> any Sink {
        if let store { return store }
        let opened = try open()
        opened.start()
        store = opened
        return opened
    }

    func start() { _ = try? opened() }
    func receive(_ delivery: Delivery) throws(StallWatchError) { try opened().receive(delivery) }
    func checkReadiness() throws(StallWatchError) { try opened().checkReadiness() }
    func finish() -> [StallWatchError] { store?.finish() ?? [] }
}
