import Glibc
import LinuxSupport
import TextOutput

/// A file that is written as a whole or not at all: as a temporary file, which a signal removes, or else the next command.
struct OutputFile {
    let path: String
    /// The file to replace, with symbolic links resolved.
    private let target: String
    /// The permissions of the replaced file; `nil` for a new one.
    private let oldPermissions: mode_t?
    private let newPermissions: mode_t

    /// A file whose path is not empty; a new one gets the permissions before umask(2), a replaced one keeps its own.
    init(path: String, permissions: mode_t = 0o666) throws(CommandFailure) {
        self.path = path
        newPermissions = permissions
        guard !path.isEmpty else { throw CommandFailure(.cannotCreate, "The output path is empty. Name a file.") }
        target = resolvedPath(path) ?? path
        let status = FileStatus(path: target)
        oldPermissions = status?.permissions
        guard status?.isRegular ?? true else {
            throw CommandFailure(.cannotCreate, "\(path) is not a regular file. Name another file for the output.")
        }
    }

    /// The directory of the file, and how the names of its temporary files begin.
    private var place: (directory: String, prefix: String) {
        let name = target.lastIndex(of: "/").map(target.index(after:)) ?? target.startIndex
        return (directoryName(target), ".\(target[name...]).")
    }

    /// Removes the temporary files of commands that were killed: who writes one holds its lock (flock(2)).
    private func removeLeftovers() {
        let (directory, prefix) = place
        for name in (directoryEntries(directory) ?? []).map(\.name) {
            guard name.hasPrefix(prefix), name.hasSuffix(".tmp"),
                Int32(name.dropFirst(prefix.count).prefix { $0 != "." }) != nil
            else { continue }
            let path = "\(directory)/\(name)"
            let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            // One that has just been made may not be locked yet.
            if let status = FileStatus(descriptor: descriptor), status.isRegular,
                status.changedAt / 1_000_000_000 + 1 < time(nil), flock(descriptor, LOCK_EX | LOCK_NB) == 0
            {
                unlink(pathBytes(path))
            }
        }
    }

    /// Writes or replaces the file; if it throws, nothing has changed.
    func write(_ bytes: [UInt8]) throws { try write { put throws(CommandFailure) in try put(bytes) } }

    func write(_ body: ((_ bytes: [UInt8]) throws(CommandFailure) -> Void) throws -> Void) throws {
        removeLeftovers()
        let random = String(UInt64.random(in: .min ... .max), radix: 36)
        let temporary = "\(place.directory)/\(place.prefix)\(getpid()).\(random).tmp"
        Interruption.remember(temporary)
        defer { Interruption.forget(temporary) }
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, newPermissions)
        guard descriptor >= 0 else { throw CommandFailure(writing: path, errno: errno) }
        flock(descriptor, LOCK_EX | LOCK_NB)
        if let oldPermissions { fchmod(descriptor, oldPermissions) }
        var isOpen = true
        do {
            try body { bytes throws(CommandFailure) in
                if let error = writeAll(bytes, to: descriptor) { throw CommandFailure(writing: path, errno: error) }
            }
            if case .failed(let error) = FileFlush(descriptor) { throw CommandFailure(writing: path, errno: error) }
            isOpen = false
            // Errors of a delayed write may only show here (close(2)).
            guard close(descriptor) == 0, rename(pathBytes(temporary), pathBytes(target)) == 0 else {
                throw CommandFailure(writing: path, errno: errno)
            }
        } catch {
            if isOpen { close(descriptor) }
            unlink(pathBytes(temporary))
            throw error
        }
    }
}

struct Destination {
    /// `nil` for standard output.
    let file: OutputFile?

    /// Throws ``CommandFailure``, before anything is read, if it cannot be a file, or is binary for a terminal.
    init(_ path: String, isBinary: Bool) throws {
        guard path == "-" else {
            file = try OutputFile(path: path)
            return
        }
        guard !isBinary || !Terminal.standardOutput.isTerminal else {
            throw CommandFailure(
                .cannotCreate, "This format is binary. Name a file with --output instead of writing to the terminal.")
        }
        file = nil
    }

    func write(_ bytes: [UInt8], of contents: String) throws {
        guard let file else { return try StandardOutput.write(bytes) }
        try file.write(bytes)
        StandardError.write("Wrote \(file.path.printable): \(contents), \(bytes.count >> 10) KiB.\n")
    }
}

/// A directory that another process writes reports to, possibly from another current directory.
struct ReportOutput: Equatable {
    let path: String

    /// - Throws: ``CommandFailure`` if the path is relative and the current directory does not exist.
    init(_ path: String) throws(CommandFailure) {
        guard let absolute = absolutePath(path) else {
            throw CommandFailure(.nothing, "the current directory does not exist: name one by a full path in --output")
        }
        self.path = absolute
    }

    /// Throws unless the directory can be written, or can be created in a directory that exists.
    func checkWritable() throws(CommandFailure) {
        var existing = path
        while access(existing, F_OK) != 0, errno == ENOENT, existing.contains("/") {
            existing = directoryName(existing)
        }
        guard let status = FileStatus(path: existing) else { throw CommandFailure(writing: path, errno: errno) }
        guard status.isDirectory else { throw CommandFailure(writing: path, errno: ENOTDIR) }
        guard access(existing, W_OK | X_OK) == 0 else { throw CommandFailure(writing: path, errno: errno) }
    }
}
