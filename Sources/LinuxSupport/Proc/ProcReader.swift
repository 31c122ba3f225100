import Glibc

/// Returns the contents of a small file, such as one in /proc.
///
/// - Parameters:
///   - path: The file's path.
///   - limit: The number of bytes after which reading stops. The result can exceed it by less than 4096 bytes.
/// - Returns: The contents; `nil` if the file cannot be opened or read. Some files of /proc can be opened by everyone, and
///   refuse the read.
package func readSmallFile(_ path: String, limit: Int = 65_536) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var contents: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while contents.count < limit {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        if count < 0 { return nil }
        guard count > 0 else { break }
        contents += buffer.prefix(count)
    }
    return String(decoding: contents, as: UTF8.self)
}

/// Returns the first line of a text, without its line feed.
package func firstLine(_ text: String) -> String {
    String(decoding: text.utf8.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
}

/// Returns the target of a symbolic link; `nil` if there is no link at `path`.
package func readLink(_ path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
