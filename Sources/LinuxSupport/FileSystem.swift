// `struct stat` is in no header of Glibc's module map, so the compiler assigns it to whichever module it loads first in
// a batch of files. With both imports the build does not depend on that order. Only this file of the module uses it.

internal import CLinux
internal import CoreFoundation
import Glibc
import Synchronization

/// Returns the absolute form of a path, without following links; `nil` with errno if the current directory is unknown.
package func absolutePath(_ path: String) -> String? {
    if path.hasPrefix("/") { return path }
    guard let directory = getcwd(nil, 0) else { return nil }
    defer { free(directory) }
    return "\(pathText(cString: directory))/\(path)"
}

package struct DirectoryEntry {
    package let name: String
    /// The type: DT_REG, DT_DIR, …, or DT_UNKNOWN if the file system does not provide it.
    package let type: Int

    /// Copies an entry from the C library's buffer, without `pointee.d_name`: that would read the 256 bytes of the
    /// declaration, but an entry is only as long as its name (readdir(3)), and what follows may not be mapped.
    init(_ entry: UnsafePointer<dirent>) {
        let offset = MemoryLayout<dirent>.offset(of: \.d_name)
        // Never nil: a stored property always has an offset.
        name =
            offset.map { pathText(cString: (UnsafeRawPointer(entry) + $0).assumingMemoryBound(to: CChar.self)) } ?? ""
        type = Int(entry.pointee.d_type)
    }
}

/// Returns the entries of a directory, unordered, with "." and ".."; `nil` with `errno` if it cannot be opened.
///
/// It ends early at a deadline, in nanoseconds of the calling thread on a CPU.
package func directoryEntries(_ path: String, until deadline: UInt64 = .max) -> [DirectoryEntry]? {
    opendir(pathBytes(path)).map { entries(of: $0, until: deadline, atMost: .max) }
}

/// Returns the names in a directory, unordered, with "." and ".."; of many the first ones, none if it cannot be read.
package func names(in directory: FixedDirectory, atMost limit: Int = .max) -> [String] {
    let descriptor = directory.open(".", O_RDONLY | O_DIRECTORY)
    guard descriptor >= 0, let stream = fdopendir(descriptor) else {
        close(descriptor)
        return []
    }
    return entries(of: stream, until: .max, atMost: limit).map(\.name)
}

/// Reads and closes an open directory.
private func entries(of directory: OpaquePointer, until deadline: UInt64, atMost limit: Int) -> [DirectoryEntry] {
    let file = KeptDescriptor(dirfd(directory))
    // If the program has closed it meanwhile, the stream's memory is left.
    defer { if file.isOpen { closedir(directory) } }
    var entries: [DirectoryEntry] = []
    while entries.count < limit, deadline == .max || threadTimeNow() < deadline, let entry = readdir(directory) {
        entries.append(DirectoryEntry(entry))
    }
    return entries
}

package struct FileStatus {
    package let size: Int
    package let isRegular: Bool
    package let isDirectory: Bool
    package let permissions: UInt32
    /// The time of the last change to the file's contents or the directory's names, in nanoseconds since 1970.
    package let changedAt: Int
    /// The time of the last change to the file or its status, which a program cannot choose, in nanoseconds since 1970.
    package let touchedAt: Int
    package let owner: UInt32
    package let group: UInt32
    /// The device and inode numbers, which identify the file whatever its name.
    package let identity: [UInt64]

    /// Reads the status of the file at `path`, or with that name in a directory, following symbolic links; `nil` with the
    /// reason in `errno`.
    package init?(path: String, in directory: FixedDirectory? = nil) {
        var status = stat()
        guard let place = try? directory?.descriptor() ?? AT_FDCWD,
            fstatat(place, pathBytes(path), &status, 0) == 0
        else { return nil }
        self.init(status)
    }

    /// Reads the status of an open file; `nil` with the reason in `errno`.
    package init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads what the kernel knows of a file, without asking the server or the daemon of its file system, which may hang;
    /// to find it by its path may ask them, so an open `descriptor` with an empty path is safer.
    package init?(cachedAt path: String, from descriptor: Int32 = AT_FDCWD) {
        var status = stat()
        // AT_EMPTY_PATH, and AT_STATX_DONT_SYNC of linux/stat.h, which fstatat(2) takes, too.
        guard fstatat(descriptor, pathBytes(path), &status, 0x5000) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        size = Int(status.st_size)
        isRegular = status.st_mode & S_IFMT == S_IFREG
        isDirectory = status.st_mode & S_IFMT == S_IFDIR
        permissions = UInt32(status.st_mode & 0o7777)
        changedAt = Self.nanoseconds(status.st_mtim)
        touchedAt = Self.nanoseconds(status.st_ctim)
        owner = status.st_uid
        group = status.st_gid
        identity = [UInt64(status.st_dev), UInt64(status.st_ino)]
    }

    private static func nanoseconds(_ time: timespec) -> Int {
        // Any time that the file system can store; 64 bits end in 2262.
        let (nanoseconds, overflow) = time.tv_sec.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? (time.tv_sec < 0 ? .min : .max) : nanoseconds &+ time.tv_nsec
    }
}

/// A descriptor that stays open for long: a program that closes all, as daemons do, gives their numbers to other files.
package struct KeptDescriptor: Sendable {
    package let number: Int32
    package let identity: [UInt64]?

    package init(_ number: Int32) {
        self.number = number
        identity = FileStatus(descriptor: number)?.identity
    }

    /// Whether the number still stands for the same file.
    package var isOpen: Bool { identity != nil && FileStatus(descriptor: number)?.identity == identity }

    /// The number for the next call, to be asked for again after each wait; -1, for which calls fail with EBADF, if the
    /// program has closed the file.
    package var usable: Int32 { isOpen ? number : -1 }

    /// Closes the file, unless the program has; returns the error number, which may be that of a delayed write, or 0.
    @discardableResult package func close() -> Int32 { isOpen && Glibc.close(number) != 0 ? errno : 0 }
}

/// Returns a descriptor that is no standard stream.
///
/// In place of one with the number of a closed stream, a copy with another number, or -1 with `errno`: what the program
/// writes to that stream would go into the file.
package func outsideOfStreams(_ descriptor: Int32, streams: ClosedRange<Int32> = 0...STDERR_FILENO) -> Int32 {
    guard streams.contains(descriptor) else { return descriptor }
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, streams.upperBound + 1)
    let reason = errno
    close(descriptor)
    errno = reason
    return copy
}

/// The most numbers that ``hasDescriptors(for:)`` looks at: some 5 ms.
private let maximumNumbers: UInt = 65_536

/// Returns whether `count` more descriptors can be opened now, by the process's limit, if no other thread opens any meanwhile;
/// opens none itself.
package func hasDescriptors(for count: Int) -> Bool {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return false }
    var free = 0
    for number in 0..<min(UInt(limit.rlim_cur), maximumNumbers) where free < count {
        if fcntl(Int32(number), F_GETFD) < 0 { free += 1 }
    }
    return free >= count
}

/// Returns whether the file at a path gives capabilities to the program that it is (setcap(8)).
package func hasFileCapabilities(_ path: String) -> Bool { clinux_has_file_capabilities(path) }

/// An open file that can be read repeatedly from its start.
package final class OpenFile: Sendable {
    private struct Known: Sendable { weak var file: OpenFile? }
    /// Of a child of fork(2) these would be its parent's files in /proc.
    private static let known = ProcessMutex<[String: Known]>([:])

    /// Returns the open file at a path, which all who ask for it have together as long as it can be read.
    package static func shared(_ path: String) -> OpenFile? {
        known.withLock { known in
            var byte: [UInt8] = [0]
            if let file = known[path]?.file, file.read(into: &byte) > 0 { return file }
            known = known.filter { $0.value.file != nil }
            let file = OpenFile(path)
            known[path] = file.map { Known(file: $0) }
            return file
        }
    }

    private let path: String
    private let descriptor: Mutex<KeptDescriptor>

    private init?(_ path: String) {
        let opened = Self.opened(path)
        guard opened.isOpen else { return nil }
        self.path = path
        descriptor = Mutex(opened)
    }

    deinit { _ = descriptor.withLock { $0.close() } }

    private static func opened(_ path: String) -> KeptDescriptor { KeptDescriptor(open(path, O_RDONLY | O_CLOEXEC)) }

    /// Reads as many of the file's first bytes as `buffer` has; returns 0 if it cannot be read.
    ///
    /// If the program has closed the file, it is opened again.
    package func read(into buffer: inout [UInt8]) -> Int {
        let number = descriptor.withLock { kept in
            if !kept.isOpen { kept = Self.opened(path) }
            return kept.number
        }
        // Never fails with EINTR: a read of /proc waits for nothing that a signal ends.
        return max(pread(number, &buffer, buffer.count, 0), 0)
    }
}

/// A failed system call, with a message that says what to do.
package struct SystemError: Error, Sendable, Equatable {
    /// A sentence, without its period, that says what failed and what to do.
    package let message: String
    /// The system's error number (errno(3)); `nil` if there is none.
    package let errno: Int32?

    package init(_ message: String, errno: Int32? = nil) {
        self.message = message
        self.errno = errno
    }
}

extension SystemError: CustomStringConvertible {
    package var description: String {
        guard let errno else { return message }
        return "\(message): \(String(cString: strerror(errno)))"
    }
}
