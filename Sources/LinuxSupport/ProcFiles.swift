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

/// The fields of /proc/<pid>/stat that StallWatch uses (proc(5)).
package struct ProcessStat: Equatable {
    /// The state (field 3): one letter.
    package var state: String
    /// The id of the parent process (field 4).
    package var parent: Int32
    /// The number of threads (field 20).
    package var threads: Int
    /// The start time in clock ticks since the boot (field 22).
    package var startTicks: UInt64

    /// Parses the file's text; `nil` if it lacks a field.
    package init?(_ text: String) {
        var fields = ByteCursor(text)
        // The command's name in parentheses may contain any character: count fields from the last parenthesis.
        guard fields.skip(pastLast: UInt8(ascii: ")")), let state = fields.word(), let parent = fields.number() else {
            return nil
        }
        fields.skipWords(15)
        guard let threads = fields.number() else { return nil }
        fields.skipWords(1)
        guard let startTicks = fields.number() else { return nil }
        self.state = state
        self.parent = Int32(clamping: parent)
        self.threads = Int(clamping: threads)
        self.startTicks = startTicks
    }
}

/// The fields of /proc/<pid>/status that say what the system permits a process (proc_pid_status(5)).
package struct ProcessStatus: Equatable, Sendable {
    /// The id of the process, also in the file of a thread that is not its first one.
    package var process: Int32
    /// The id of the process that traces this one; 0 if there is none.
    package var tracer: Int32
    /// The effective user id.
    package var effectiveUser: UInt32
    /// The seccomp mode: 0, 1 for strict, 2 for a filter; `nil` if the kernel does not show it.
    package var seccompMode: Int?
    /// Whether the process can never gain privileges (no_new_privs); `nil` if the kernel does not show it.
    package var hasNoNewPrivileges: Bool?
    /// The effective capabilities; `nil` if the kernel does not show them.
    package var capabilities: UInt64?

    /// Whether the process has CAP_SYS_PTRACE; `nil` if unknown.
    package var maySysPtrace: Bool? { capabilities.map { $0 >> 19 & 1 == 1 } }

    /// Returns whether a text of the file shows a seccomp mode other than 0, or nothing at all.
    ///
    /// A kernel without seccomp shows the other fields only.
    package static func mayHaveFilter(_ text: String) -> Bool {
        var fields = ByteCursor(text)
        return fields.skip(pastLinePrefix: "Seccomp:") ? fields.number() != 0 : text.isEmpty
    }

    /// Parses the file's text; `nil` if it lacks the process or its user.
    package init?(_ text: String) {
        func number(_ prefix: StaticString, skipping words: Int = 0) -> UInt64? {
            var cursor = ByteCursor(text)
            guard cursor.skip(pastLinePrefix: prefix) else { return nil }
            cursor.skipWords(words)
            return cursor.number()
        }
        guard let process = number("Tgid:").flatMap(Int32.init(exactly:)),
            let user = number("Uid:", skipping: 1).flatMap(UInt32.init(exactly:))
        else { return nil }
        self.process = process
        effectiveUser = user
        tracer = number("TracerPid:").flatMap(Int32.init(exactly:)) ?? 0
        seccompMode = number("Seccomp:").map { Int(clamping: $0) }
        hasNoNewPrivileges = number("NoNewPrivs:").map { $0 != 0 }
        var effective = ByteCursor(text)
        // Hexadecimal without a prefix.
        capabilities =
            effective.skip(pastLinePrefix: "CapEff:") ? effective.word().flatMap { UInt64($0, radix: 16) } : nil
    }
}

/// The files in /proc/<pid>/task/<tid> that diagnoses and captures read.
package enum ThreadFile: String, CaseIterable, Sendable {
    case syscall, wchan, schedstat, stat, status, stack

    /// The result of reading such a file.
    package enum Answer: Equatable, Sendable {
        case shown
        /// The file is there, and does not show its value.
        case hidden
        /// The file cannot be opened.
        case missing(errno: Int32)
    }

    /// Reads the file of a thread.
    ///
    /// The thread must be waiting: `wchan` and `stack` are empty for a running thread.
    ///
    /// - Parameter directory: The thread's directory.
    /// - Returns: Whether the file shows its value.
    package func read(in directory: String) -> Answer {
        guard let text = readSmallFile("\(directory)/\(rawValue)") else { return .missing(errno: errno) }
        return isShown(text) ? .shown : .hidden
    }

    /// Returns whether the text contains the file's value.
    func isShown(_ text: String) -> Bool {
        var cursor = ByteCursor(text)
        switch self {
        // "running", or numbers.
        case .syscall: return cursor.next != nil
        // The kernel writes "0" for a thread that does not wait, and for a reader without permission.
        case .wchan: return cursor.word().map { $0 != "0" } ?? false
        // A kernel that does not count shows zeros.
        case .schedstat:
            guard cursor.number() != nil, cursor.number() != nil, let slices = cursor.number() else { return false }
            return slices > 0
        case .stat: return ProcessStat(text) != nil
        case .status: return cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:") && cursor.number() != nil
        case .stack: return cursor.next != nil
        }
    }
}
