import LinuxSupport
import Glibc

/// The file with the reports of a directory that are done: delivered or kept aside.
///
/// A line per report's file name, appended after the collector has answered. So a crash between answer and line sends a
/// report again, and none is left out. A line that breaks off counts for nothing. Names of files that are gone are dropped
/// from time to time. Not flushed to the disk: a power failure may also repeat reports.
final class ShipCheckpoint {
    /// The most bytes that are read: the names of two million reports.
    private static let maximumBytes = 128 << 20
    /// Lines of files that are gone, before the file is written anew.
    private static let maximumGone = 10_000

    private let path: String
    private let lock: Int32
    private var descriptor: Int32
    private var lines = 0
    private(set) var done: Set<String> = []

    /// Opens the checkpoint in `folder`, which is created if it is missing; throws if another process uses it.
    init(folder: String) throws(CommandFailure) {
        path = folder + "/done"
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
            throw CommandFailure(
                .cannotCreate,
                "\(folder) cannot be created: \(String(cString: strerror(errno))). Name a writable folder with --state."
            )
        }
        lock = open(folder + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard lock >= 0 else { throw CommandFailure(writing: folder + "/lock", errno: errno) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            close(lock)
            guard reason == EWOULDBLOCK else { throw CommandFailure(writing: folder + "/lock", errno: reason) }
            throw CommandFailure(.usage, "Another stallwatch ship already follows this directory: \(folder) is locked.")
        }
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0, let bytes = AtomicFile.read(path, limit: Self.maximumBytes) else {
            let reason = errno
            if descriptor >= 0 { close(descriptor) }
            close(lock)
            throw CommandFailure(writing: path, errno: reason)
        }
        let complete = bytes.lastIndex(of: Self.lineFeed).map { bytes[...$0] } ?? []
        let names = complete.split(separator: Self.lineFeed)
        done = Set(names.map { String(decoding: $0, as: UTF8.self) })
        lines = names.count
        // Ends a line that breaks off.
        if complete.count < bytes.count { _ = writeAll([Self.lineFeed], to: descriptor) }
    }

    deinit {
        close(descriptor)
        close(lock)
    }

    private static let lineFeed = UInt8(ascii: "\n")

    /// Records reports as done, even if the file cannot be written: then it returns the error number.
    func add(_ names: [String]) -> Int32? {
        done.formUnion(names)
        lines += names.count
        return writeAll(names.flatMap { Array($0.utf8) + [Self.lineFeed] }, to: descriptor)
    }

    /// Writes the file anew if most of it is about files that are gone.
    func compact(present: (String) -> Bool) {
        guard lines > Self.maximumGone else { return }
        let kept = done.filter(present)
        guard lines > kept.count * 2 + Self.maximumGone else { return }
        let text = kept.sorted().flatMap { Array($0.utf8) + [Self.lineFeed] }
        // If it fails, the old file stays, which is only longer.
        guard (try? AtomicFile.replace(path, with: text)) != nil else { return }
        let new = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
        guard new >= 0 else { return }
        close(descriptor)
        descriptor = new
        done = kept
        lines = kept.count
    }
}
