import Glibc

/// An entry of a directory, as from readdir(3).
package struct DirectoryEntry {
    package let name: String
    /// The type: DT_REG, DT_DIR, …, or DT_UNKNOWN if the file system does not provide it.
    package let type: Int

    /// Copies an entry from the C library's buffer.
    ///
    /// Does not use `pointee.d_name`: that would read the 256 bytes of the declaration, but an entry is only as long as
    /// its name (readdir(3)). Behind the last entry the memory may not be mapped.
    init(_ entry: UnsafePointer<dirent>) {
        let offset = MemoryLayout<dirent>.offset(of: \.d_name)
        // Never nil: a stored property always has an offset.
        name = offset.map { String(cString: (UnsafeRawPointer(entry) + $0).assumingMemoryBound(to: CChar.self)) } ?? ""
        type = Int(entry.pointee.d_type)
    }
}

/// Returns the entries of the directory at `path`, in no order, with "." and "..".
///
/// - Parameter path: The directory's path.
/// - Returns: The entries; `nil` if the directory cannot be opened, with the reason in `errno`.
package func directoryEntries(_ path: String) -> [DirectoryEntry]? {
    guard let directory = opendir(path) else { return nil }
    defer { closedir(directory) }
    var entries: [DirectoryEntry] = []
    while let entry = readdir(directory) { entries.append(DirectoryEntry(entry)) }
    return entries
}
