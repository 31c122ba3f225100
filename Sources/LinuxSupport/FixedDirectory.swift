import Glibc
import Synchronization

/// A directory that stays the one that was named first: neither chdir(2) nor chroot(2), nor a mount over it, leads elsewhere.
///
/// It is opened at once, and files in it are reached through its descriptor. Only if the program has closed that, or if the
/// directory did not exist or has been removed, is the path followed again.
package final class FixedDirectory: Sendable {
    /// The absolute path, for messages; as it was given if the working directory was unknown.
    package let path: String
    private let kept: Mutex<KeptDescriptor?>

    /// Without `isOpened` the directory is opened when it is first used: its file system may hang.
    package init(_ path: String, isOpened: Bool = true) {
        self.path = absolutePath(path) ?? path
        kept = Mutex(isOpened ? Self.opened(self.path) : nil)
    }

    deinit { _ = kept.withLock { $0?.close() } }

    private static func opened(_ path: String) -> KeptDescriptor? {
        // With O_PATH also one that may be written and not read.
        let descriptor = outsideOfStreams(Glibc.open(pathBytes(path), 0x20_0000 | O_DIRECTORY | O_CLOEXEC))
        return descriptor >= 0 ? KeptDescriptor(descriptor) : nil
    }

    /// Returns a descriptor for openat(2) and its like, until the next call of a function of the directory.
    package func descriptor() throws(SystemError) -> Int32 {
        let (number, failure) = kept.withLock { kept in
            if kept?.isOpen != true { kept = Self.opened(path) }
            return (kept?.number, errno)
        }
        guard let number else { throw SystemError("the directory \(path) cannot be opened", errno: failure) }
        return number
    }

    /// Opens a file in it, or itself for readdir(3), fsync(2) and flock(2) (`"."`); returns -1 with `errno` on failure.
    package func open(_ name: String, _ flags: Int32, _ mode: UInt32 = 0) -> Int32 {
        guard let place = try? descriptor() else { return -1 }
        return outsideOfStreams(openat(place, pathBytes(name), flags | O_CLOEXEC, mode))
    }

    /// A path for calls that take no descriptor, such as bind(2): the directory's own, or one through /proc if that
    /// leads elsewhere by now.
    package var reachablePath: String {
        guard let number = try? descriptor(), let own = FileStatus(descriptor: number)?.identity,
            FileStatus(path: path)?.identity != own
        else { return path }
        let link = "/proc/self/fd/\(number)"
        return FileStatus(path: link)?.identity == own ? link : path
    }

    /// Follows the path again, because the directory has been removed.
    package func reopen() {
        kept.withLock { kept in
            kept?.close()
            kept = Self.opened(path)
        }
    }
}

/// A file by its name in a directory that stays the same.
package struct FixedFile: Sendable {
    package let directory: FixedDirectory
    package let name: String

    /// Creates a file's place; see ``FixedDirectory/init(_:isOpened:)``.
    package init(_ path: String, isOpened: Bool = true) {
        let path = absolutePath(path) ?? path
        let slash = path.lastIndex(of: "/")
        name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        directory = FixedDirectory(
            slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".", isOpened: isOpened)
    }

    package var path: String { directory.path == "/" ? "/\(name)" : "\(directory.path)/\(name)" }
}
