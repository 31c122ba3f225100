// `struct stat` is in no header of Glibc's module map, so the compiler assigns it to whichever module it loads first in
// a batch of files. With both imports the build does not depend on that order. Only this file of the module uses it.
internal import CoreFoundation
import Glibc

/// The status of a file, as from stat(2).
package struct FileStatus {
    /// The file's size in bytes.
    package let size: Int
    /// Whether the file is a regular file.
    package let isRegular: Bool
    /// Whether the file is a directory.
    package let isDirectory: Bool
    /// The permission bits.
    package let permissions: UInt32
    /// The time of the last change to the file's contents or the directory's names, in nanoseconds since 1970.
    package let changedAt: Int
    /// The user id of the file's owner.
    package let owner: UInt32
    /// The id of the file's group.
    package let group: UInt32
    /// The device and inode numbers, which identify the file whatever its name.
    package let identity: [UInt64]

    /// Reads the status of the file at `path`, following symbolic links.
    ///
    /// `nil` if that fails, with the reason in `errno`.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Reads the status of an open file.
    ///
    /// `nil` if that fails, with the reason in `errno`.
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
        owner = status.st_uid
        group = status.st_gid
        identity = [UInt64(status.st_dev), UInt64(status.st_ino)]
    }
}
