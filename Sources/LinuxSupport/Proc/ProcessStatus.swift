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
