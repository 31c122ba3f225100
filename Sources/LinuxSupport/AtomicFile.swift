import Glibc

package enum AtomicFile {
    /// Creates a file for its owner only, in place of what has the name, even a FIFO, and returns its descriptor.
    ///
    /// Here and below, `path` may be a name in a directory that is given.
    package static func create(_ path: String, in directory: FixedDirectory? = nil) throws(SystemError) -> Int32 {
        let (place, bytes) = (try directory?.descriptor() ?? AT_FDCWD, pathBytes(path))
        unlinkat(place, bytes, 0)
        let descriptor = outsideOfStreams(
            openat(place, bytes, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600))
        guard descriptor >= 0 else {
            throw failure(path, directory, "created: make the directory writable or choose another one", errno)
        }
        return descriptor
    }

    private static func failure(
        _ path: String, _ directory: FixedDirectory?, _ what: String, _ errno: Int32
    ) -> SystemError {
        SystemError("\(directory.map { "\($0.path)/" } ?? "")\(path) cannot be \(what)", errno: errno)
    }

    package static func remove(_ path: String, in directory: FixedDirectory? = nil) throws(SystemError) {
        guard unlinkat(try directory?.descriptor() ?? AT_FDCWD, pathBytes(path), 0) != 0 else { return }
        throw failure(path, directory, "removed: make the directory writable", errno)
    }

    /// Gives a file another name in the same directory, in place of what has it.
    package static func rename(
        _ path: String, to other: String, in directory: FixedDirectory? = nil
    ) throws(SystemError) {
        let place = try directory?.descriptor() ?? AT_FDCWD
        guard renameat(place, pathBytes(path), place, pathBytes(other)) != 0 else { return }
        throw failure(other, directory, "replaced: make the directory writable", errno)
    }

    /// Returns a name beside `path` that no other program can foresee, and that identifies the process that writes it.
    package static func temporaryPath(
        for path: String, of writer: ProcessIdentity = .writer, random: UInt64 = .random(in: .min ... .max)
    ) -> String {
        "\(path).\(String(random, radix: 36)).\(writer)\(temporarySuffix)"
    }

    package static let temporarySuffix = ".tmp"

    /// Returns the process that a name of ``temporaryPath(for:of:random:)`` identifies; `nil` for any other name.
    package static func writer(of name: String, beside path: String) -> ProcessIdentity? {
        guard name.utf8.starts(with: path.utf8) else { return nil }
        let parts = Array(name.split(separator: ".", omittingEmptySubsequences: false).suffix(3))
        guard parts.count == 3, let random = UInt64(parts[0], radix: 36),
            let writer = ProcessIdentity(String(parts[1])),
            name.utf8.elementsEqual(temporaryPath(for: path, of: writer, random: random).utf8)
        else { return nil }
        return writer
    }

    /// Writes a file that only its owner may read, and flushes it to the disk; `path` must not be a symbolic link.
    ///
    /// If anything fails, it removes the file and throws. A file that cannot be flushed
    /// (``FileFlush/unavailable(errno:)``) is written all the same. With a time of its last change, in nanoseconds since
    /// 1970, it says what is true now, and is not flushed. With a `newName` it is renamed before the flush: it then
    /// survives the death of the process, and only a power failure during the flush can leave it empty.
    @discardableResult
    package static func write(
        _ bytes: [UInt8], to path: String, in directory: FixedDirectory? = nil, changedAt: UInt64? = nil,
        newName: String? = nil
    ) throws(SystemError) -> FileFlush {
        let file = KeptDescriptor(try create(path, in: directory))
        var failure = writeAll(bytes, to: file.usable) ?? 0
        if failure == 0, let changedAt {
            let time = timespec(tv_sec: Int(changedAt / 1_000_000_000), tv_nsec: Int(changedAt % 1_000_000_000))
            if futimens(file.usable, [time, time]) != 0 { failure = errno }
        }
        if failure == 0, let newName {
            do { try rename(path, to: newName, in: directory) } catch { failure = error.errno ?? EIO }
        }
        let flush = failure == 0 && changedAt == nil ? FileFlush(file.usable) : .done
        if case .failed(let error) = flush { failure = error }
        let closing = file.close()
        if failure == 0 { failure = closing }
        guard failure == 0 else {
            try? remove(path, in: directory)
            throw Self.failure(path, directory, "written: free some space or choose another directory", failure)
        }
        return flush
    }

    /// Creates a file, or replaces it atomically; if that fails, the old file is unchanged.
    package static func replace(
        _ path: String, in directory: FixedDirectory? = nil, with bytes: [UInt8], through temporary: String? = nil,
        changedAt: UInt64? = nil
    ) throws(SystemError) {
        let temporary = temporary ?? temporaryPath(for: path)
        // A busy disk may take long to flush.
        let isNew = FileStatus(path: path, in: directory) == nil
        try write(bytes, to: temporary, in: directory, changedAt: changedAt, newName: isNew ? path : nil)
        guard !isNew else { return }
        do {
            try rename(temporary, to: path, in: directory)
        } catch {
            try? remove(temporary, in: directory)
            throw error
        }
    }

    /// Returns the contents of a regular file; `nil` if it cannot be read or has more than `limit` bytes.
    package static func read(_ path: String, in directory: FixedDirectory? = nil, limit: Int) -> [UInt8]? {
        read(path, directory) { $0 <= limit ? 0..<$0 : nil }
    }

    /// Returns the last bytes of a regular file, at most `count`; `nil` if it cannot be read.
    package static func tail(_ path: String, in directory: FixedDirectory? = nil, count: Int) -> [UInt8]? {
        read(path, directory) { max($0 - count, 0)..<$0 }
    }

    private static func read(
        _ path: String, _ directory: FixedDirectory?, part: (_ size: Int) -> Range<Int>?
    ) -> [UInt8]? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        let descriptor = directory?.open(path, flags) ?? open(path, flags)
        guard descriptor >= 0 else { return nil }
        let file = KeptDescriptor(descriptor)
        defer { file.close() }
        guard let status = FileStatus(descriptor: descriptor), status.isRegular, let part = part(status.size) else {
            return nil
        }
        return read(descriptor, from: part.lowerBound, count: part.count)
    }

    /// Reads `count` bytes of an open file, or those up to its end; `nil` if they cannot be read.
    package static func read(_ descriptor: Int32, from offset: Int, count: Int) -> [UInt8]? {
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count, let base = buffer.baseAddress {
                let got = pread(descriptor, base + filled, count - filled, off_t(offset + filled))
                if got < 0, errno == EINTR { continue }
                guard got > 0 else {
                    failed = got < 0
                    break
                }
                filled += got
            }
        }
        return failed ? nil : bytes
    }
}

/// Writes all bytes to an open file, also after EINTR; returns the error number if a write failed, or `nil`.
///
/// A full pipe that does not block is an error (EAGAIN), unless the caller waits for its reader.
package func writeAll(_ bytes: [UInt8], to descriptor: Int32, waitingForReader: Bool = false) -> Int32? {
    bytes.withUnsafeBytes { buffer in
        var left = buffer[...]
        while !left.isEmpty {
            let count = write(descriptor, UnsafeRawBufferPointer(rebasing: left).baseAddress, left.count)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN, waitingForReader {
                // As a write to a pipe that blocks: the process at its other end decides how long that takes.
                var file = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&file, 1, -1)
                continue
            }
            guard count > 0 else { return count < 0 ? errno : EIO }
            left = left.dropFirst(count)
        }
        return nil
    }
}

package enum FileFlush: Equatable, Sendable {
    case done
    /// The system does not permit it: the file is written, but a power failure may lose its contents.
    case unavailable(errno: Int32)
    /// The disk failed or is full.
    case failed(errno: Int32)

    /// Flushes an open file; may take as long as the disk needs.
    package init(_ descriptor: Int32) {
        self = fsync(descriptor) == 0 ? .done : Self(errno: errno)
    }

    /// Distinguishes between a call that is refused and a disk that failed (fsync(2), seccomp(2)).
    init(errno: Int32) {
        switch errno {
        case EINVAL, EROFS, ENOSYS, EOPNOTSUPP, EPERM, EACCES: self = .unavailable(errno: errno)
        default: self = .failed(errno: errno)
        }
    }
}
