import Glibc
import LinuxSupport
import StallReports
import StallSymbols

struct RunnableProgram {
    let path: String

    /// The most interpreters one after another (the kernel's limit in search_binary_handler).
    private static let mostInterpreters = 5

    init(_ name: String, search: ProgramSearch) throws(CommandFailure) {
        path = try search.path(of: name)
        // A script runs its interpreter: that is the program with the loop.
        var next = path
        for _ in 0..<Self.mostInterpreters {
            guard let interpreter = try Self.interpreter(of: next, search: search) else { return }
            next = interpreter
        }
        throw CommandFailure(
            .notExecutable,
            "\(path) has more than \(Self.mostInterpreters) interpreters, one after another: name the last one")
    }

    /// Returns the path of the program that runs a script; `nil` for a program that can be monitored.
    private static func interpreter(of path: String, search: ProgramSearch) throws(CommandFailure) -> String? {
        switch try ProgramFile(path: path) {
        case .program(let program):
            if let reason = reason(against: program) ?? ProgramPrivileges(path: path).reasonAgainstPreload() {
                throw CommandFailure(.notExecutable, "\(path) \(reason), so the monitor cannot be loaded into it")
            }
            return nil
        case .script(let words):
            // The caller has checked that there is a first word.
            let interpreter = words.first ?? ""
            guard fileName(interpreter) == "env" else { return try search.path(of: interpreter) }
            guard let program = programOfEnv(words.dropFirst().joined(separator: " ")) else { return interpreter }
            return try search.path(of: program)
        }
    }

    /// Returns the program that env(1) starts in a script's first line: its first word that is no option and no variable.
    static func programOfEnv(_ argument: String) -> String? {
        argument.split(separator: " ").first { !$0.hasPrefix("-") && !$0.contains("=") }.map(String.init)
    }

    /// Returns why the dynamic linker cannot load the monitor into a program; `nil` if it can.
    static func reason(against program: ELFFile.Program) -> String? {
        guard program.machine == machine else { return "is built for another architecture" }
        guard let interpreter = program.interpreter else { return "is linked statically" }
        guard fileName(interpreter) == dynamicLinker else {
            return "is built for another C library than glibc (its dynamic linker is \(interpreter))"
        }
        return program.hasStaticSwift ? "has the Swift runtime linked into it" : nil
    }

    #if arch(arm64)
        private static let machine = UInt16(EM_AARCH64)
        private static let dynamicLinker = "ld-linux-aarch64.so.1"
    #else
        private static let machine = UInt16(EM_X86_64)
        private static let dynamicLinker = "ld-linux-x86-64.so.2"
    #endif
}

enum ProgramFile: Equatable {
    case program(ELFFile.Program)
    case script([String])

    /// The longest first line of a script, in bytes (BINPRM_BUF_SIZE).
    static let longestLine = 256

    /// Reads an executable file; throws if it is neither of them, cannot be read, or is built for another kind of machine.
    init(path: String) throws(CommandFailure) {
        let start: [UInt8]
        let file: ELFFile
        do throws(StallWatchError) {
            file = try ELFFile(path: path)
            let count = min(try file.size(), UInt64(Self.longestLine))
            start = try file.bytes(at: 0, count: count, atMost: Self.longestLine)
        } catch {
            throw Self.unchecked(path, error)
        }
        if let words = Self.words(ofFirstLine: start) {
            guard !words.isEmpty else {
                throw CommandFailure(.notExecutable, "\(path) names no program in its first line: write one after #!")
            }
            self = .script(words)
            return
        }
        guard start.count > 5, start.starts(with: [0x7f, 0x45, 0x4c, 0x46]) else {
            throw CommandFailure(
                .notExecutable,
                "\(path) is neither an ELF file nor a script that begins with #!: name the program that reads it")
        }
        guard start[4] == UInt8(ELFCLASS64), start[5] == UInt8(ELFDATA2LSB) else {
            throw CommandFailure(
                .notExecutable, "\(path) is built for another architecture, so the monitor cannot be loaded into it")
        }
        do throws(StallWatchError) {
            self = .program(try file.program())
        } catch {
            throw Self.unchecked(path, error)
        }
    }

    private static func unchecked(_ path: String, _ error: StallWatchError) -> CommandFailure {
        CommandFailure(.notExecutable, "\(path) cannot be checked, so it is not started: \(error.description)")
    }

    /// The interpreter and the rest as one argument, as the kernel splits them; `nil` if the file is no script.
    static func words(ofFirstLine start: [UInt8]) -> [String]? {
        guard start.starts(with: "#!".utf8) else { return nil }
        let line = pathText(start.dropFirst(2).prefix { $0 != UInt8(ascii: "\n") && $0 != 0 })
        let parts = line.split(maxSplits: 1, whereSeparator: { $0 == " " || $0 == "\t" })
        return parts.map { String($0).trimmed }
    }
}

/// The search for a program, as execvp(3) and shells do it.
struct ProgramSearch {
    let directories: [String]

    init(path: String?) {
        // An empty entry is the current directory (environ(7)).
        directories = (path ?? "/bin:/usr/bin").split(separator: ":", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? "." : String($0) }
    }

    /// Returns a program's path for execve(2); a name with a slash is a path, and any other a name in PATH.
    func path(of name: String) throws(CommandFailure) -> String {
        guard !name.contains("/") else { return try checked(name) }
        var failure: CommandFailure?
        for directory in directories {
            do throws(CommandFailure) {
                return try checked("\(directory)/\(name)")
            } catch {
                if error.status != .notFound { failure = failure ?? error }
            }
        }
        throw failure
            ?? CommandFailure(.notFound, "\(name) is not found in PATH: give the program's path, such as ./\(name)")
    }

    private func checked(_ path: String) throws(CommandFailure) -> String {
        guard let status = FileStatus(path: path) else {
            let error = errno
            throw CommandFailure(
                error == ENOENT || error == ENOTDIR ? .notFound : .notExecutable,
                "\(path) cannot be started: \(String(cString: strerror(error)))")
        }
        guard status.isRegular else {
            let kind = status.isDirectory ? "a directory" : "not a regular file"
            throw CommandFailure(.notExecutable, "\(path) is \(kind): name a program")
        }
        guard access(path, X_OK) == 0 else {
            throw CommandFailure(
                .notExecutable, "\(path) is not executable: make it so with chmod +x, or name the program that reads it"
            )
        }
        return path
    }
}

/// The privileges that a program gains when it is started, for which the dynamic linker ignores LD_PRELOAD (ld.so(8)).
struct ProgramPrivileges: Equatable {
    /// The user and the group that the program becomes; `nil` if it stays the caller's.
    var user: UInt32?
    var group: UInt32?
    var hasCapabilities = false

    /// Returns why the dynamic linker does not load the monitor for a user; `nil` if it does.
    func reasonAgainstPreload(user: UInt32 = getuid(), group: UInt32 = getgid()) -> String? {
        if let new = self.user, new != user { return "changes the user (set-user-ID)" }
        if let new = self.group, new != group { return "changes the group (set-group-ID)" }
        // Root has all capabilities already (security/commoncap.c, cap_bprm_creds_from_file).
        return hasCapabilities && user != 0 ? "gains capabilities (setcap)" : nil
    }
}

extension ProgramPrivileges {
    init(path: String) {
        self.init()
        guard let status = FileStatus(path: path) else { return }
        if status.permissions & UInt32(S_ISUID) != 0 { user = status.owner }
        // Without the permission to execute, the bit meant mandatory locking (stat(2)).
        let group = UInt32(S_ISGID | S_IXGRP)
        if status.permissions & group == group { self.group = status.group }
        hasCapabilities = hasFileCapabilities(path)
    }
}
