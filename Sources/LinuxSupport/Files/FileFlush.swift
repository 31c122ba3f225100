import Glibc

/// The outcome of flushing a file to the disk.
package enum FileFlush: Equatable, Sendable {
    case done
    /// The file system or a filter of system calls does not permit it.
    ///
    /// The file is written, but a power failure may lose its contents.
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
