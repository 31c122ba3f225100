import Glibc

/// What a directory has, as readdir(3) tells it.
package struct DirectoryEntry {
    package let name: String
    /// DT_REG, DT_DIR, …; DT_UNKNOWN where the file system does not tell.
    package let type: Int

    /// Copies an entry as it lies in the C library's buffer.
    ///
    /// Not by way of `pointee.d_name`: an entry is only as long as its name, not the 256 bytes of the declaration (readdir(3)),
    /// and so many bytes of the last one may reach into memory that is not there.
    init(_ entry: UnsafePointer<dirent>) {
        let offset = MemoryLayout<dirent>.offset(of: \.d_name)
        // Of a stored property there always is an offset.
        name = offset.map { String(cString: (UnsafeRawPointer(entry) + $0).assumingMemoryBound(to: CChar.self)) } ?? ""
        type = Int(entry.pointee.d_type)
    }
}

/// What is in the directory at `path`, "." and ".." among it, in no order; `nil` with errno if it cannot be opened.
package func directoryEntries(_ path: String) -> [DirectoryEntry]? {
    guard let directory = opendir(path) else { return nil }
    defer { closedir(directory) }
    var entries: [DirectoryEntry] = []
    while let entry = readdir(directory) { entries.append(DirectoryEntry(entry)) }
    return entries
}
