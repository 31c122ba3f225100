import LinuxSupport
import Glibc

/// Where shipping remembers what was sent, outside the report directories.
enum ShipState {
    /// The folder for one report directory, inside `folder`, which is created if it is missing.
    ///
    /// Named after the directory and a checksum of its full path, so that two directories of the same name have their own.
    static func folder(for directory: String, in folder: String) throws(CommandFailure) -> String {
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw CommandFailure(writing: folder, errno: errno) }
        guard let resolved = realpath(directory, nil) else { throw CommandFailure(reading: directory, errno: errno) }
        defer { free(resolved) }
        let path = String(cString: resolved)
        var checksum = CRC32()
        checksum.add(Array(path.utf8))
        return "\(folder)/\(fileName(path))-\(String(checksum.value, radix: 16))"
    }
}
