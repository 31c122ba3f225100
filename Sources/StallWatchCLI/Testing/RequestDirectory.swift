import Glibc
import LinuxSupport

/// The directory in which the test processes of one run offer requests.
struct RequestDirectory {
    let path: String

    init() throws(CommandFailure) {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/stallwatch-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw CommandFailure(writing: parent, errno: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the directory and the files in it.
    func remove() {
        for entry in directoryEntries(path) ?? [] { unlink("\(path)/\(entry.name)") }
        rmdir(path)
    }
}
