internal import CLinux
import Glibc

/// Returns the contents of a small file, up to `limit` bytes or less than 4096 more; `nil` if it cannot be read.
package func readSmallFile(_ path: String, limit: Int = 65_536) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    let file = KeptDescriptor(descriptor)
    defer { file.close() }
    var contents: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while contents.count < limit {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0, errno == EINTR { continue }
        if count < 0 { return nil }
        guard count > 0 else { break }
        contents += buffer.prefix(count)
    }
    return pathText(contents)
}

package func firstLine(_ text: String) -> String {
    String(decoding: text.utf8.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
}

/// Returns the target of a symbolic link; `nil` if there is no link at `path`.
package func readLink(_ path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(pathBytes(path), &buffer, buffer.count)
    guard count > 0 else { return nil }
    return pathText(buffer.prefix(count).map { UInt8(bitPattern: $0) })
}

package func fileName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

/// The number of bytes read of /proc/self/maps: some 10,000 mappings.
package let maximumMaps = 1 << 20

/// A mapping of memory, as /proc/<pid>/maps shows it (proc_pid_maps(5)).
package struct MemoryMapping: Equatable {
    /// Whether other processes see what is written to it.
    package var isShared: Bool
    /// The path of the mapped file; `nil` if there is none.
    package var file: String?

    /// Finds the mapping of an address in the text of the file; `nil` if there is none.
    package init?(of address: UInt64, in maps: String) {
        for line in maps.utf8.split(separator: UInt8(ascii: "\n")) {
            // "begin-end perms offset device inode path"; the path may contain spaces.
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5, omittingEmptySubsequences: true)
            guard fields.count >= 5, let dash = fields[0].firstIndex(of: UInt8(ascii: "-")),
                let begin = UInt64(Substring(fields[0][..<dash]), radix: 16),
                let end = UInt64(Substring(fields[0][fields[0].index(after: dash)...]), radix: 16), begin <= address,
                address < end
            else { continue }
            isShared = fields[1].last == UInt8(ascii: "s")
            let path = fields.count == 6 ? String(Substring(fields[5].drop { $0 == UInt8(ascii: " ") })) : ""
            file = path.hasPrefix("/") ? path : nil
            return
        }
        return nil
    }
}

/// The executable of this process: /proc/self/exe is a dynamic linker that was started as `/lib64/ld-… ./notes`.
package enum OwnExecutable {
    /// The path; empty if it is not known.
    package static let path = named ?? readLink("/proc/self/exe") ?? ""
    /// A path by which the file can be opened, even if it has been deleted or replaced where the system permits that.
    package static let file = named ?? "/proc/self/exe"

    /// The file that is mapped where the program headers are; `nil` if no dynamic linker was started.
    private static let named: String? = {
        guard let started = readLink("/proc/self/exe"), fileName(started).hasPrefix("ld"),
            let maps = readSmallFile("/proc/self/maps", limit: maximumMaps)
        else { return nil }
        // The dynamic linker puts the executable's headers in place of its own (elf/rtld.c).
        return MemoryMapping(of: clinux_program_headers(), in: maps)?.file
    }()
}

/// The fields of /proc/<pid>/status that say what the system permits a process (proc_pid_status(5)).
package struct ProcessStatus: Equatable, Sendable {
    /// The id of the process, also in the file of a thread that is not its first one.
    package var process: Int32
    /// The id of the process that traces this one; 0 if there is none.
    package var tracer: Int32
    package var effectiveUser: UInt32
    /// The seccomp mode: 0, 1 for strict, 2 for a filter; `nil` if the kernel does not show it.
    package var seccompMode: Int?
    /// Whether the process can never gain privileges (no_new_privs); `nil` if the kernel does not show it.
    package var hasNoNewPrivileges: Bool?
    /// The effective capabilities; `nil` if the kernel does not show them.
    package var capabilities: UInt64?

    /// Whether the process has CAP_SYS_PTRACE; `nil` if unknown.
    package var maySysPtrace: Bool? { capabilities.map { $0 >> 19 & 1 == 1 } }

    /// Returns whether the text has a seccomp mode other than 0, or nothing; without seccomp it has other fields.
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
