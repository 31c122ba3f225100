// `struct stat` is in no header of Glibc's module map, so it belongs to whichever module the compiler happens to load first
// in a batch of files. Both imports are needed for a build that does not depend on that order, and so this is the only
// file that uses it.
internal import CoreFoundation
import Glibc

/// What stat(2) says of a file.
package struct FileStatus {
    /// In bytes.
    package let size: Int
    /// Whether it is a regular file.
    package let isRegular: Bool
    /// Whether it is a directory.
    package let isDirectory: Bool
    /// The permission bits.
    package let permissions: UInt32
    /// When its contents, or the names in a directory, changed last: in nanoseconds since 1970.
    package let changedAt: Int
    /// Device and inode: which file it is, whatever its name.
    package let identity: [UInt64]

    /// Follows symbolic links.
    ///
    /// `nil` if there is no such file; then `errno` says why.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// A file that is open.
    ///
    /// `nil` if it cannot be asked; then `errno` says why.
    package init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        size = Int(status.st_size)
        isRegular = status.st_mode & S_IFMT == S_IFREG
        isDirectory = status.st_mode & S_IFMT == S_IFDIR
        permissions = UInt32(status.st_mode & 0o7777)
        changedAt = status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
        identity = [UInt64(status.st_dev), UInt64(status.st_ino)]
    }
}
