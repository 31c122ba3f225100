import Glibc
import LinuxSupport
import StallSymbols

/// A program into which the monitor can be loaded.
struct RunnableProgram {
    /// The path for execve(2).
    let path: String

    /// The most interpreters one after another (the kernel's limit in search_binary_handler).
    private static let mostInterpreters = 5

    /// Finds a program, and checks that the monitor can be loaded into it.
    ///
    /// - Parameters:
    ///   - name: The program's path, or its name in PATH.
    ///   - search: The directories of PATH.
    /// - Throws: ``StartFailure`` if it cannot be started, or cannot be monitored.
    init(_ name: String, search: ProgramSearch) throws(StartFailure) {
        path = try search.path(of: name)
        // A script runs its interpreter: that is the program with the loop.
        var next = path
        for _ in 0..<Self.mostInterpreters {
            guard let interpreter = try Self.interpreter(of: next, search: search) else { return }
            next = interpreter
        }
        throw StartFailure(
            sentence:
                "\(path) has more than \(Self.mostInterpreters) interpreters, one after another: name the last one",
            status: StartFailure.notExecutable)
    }

    /// Returns the path of the program that runs a script; `nil` for a program that can be monitored.
    private static func interpreter(of path: String, search: ProgramSearch) throws(StartFailure) -> String? {
        switch try ProgramFile(path: path) {
        case .program(let program):
            if let reason = reason(against: program) ?? ProgramPrivileges(path: path).reasonAgainstPreload {
                throw StartFailure(
                    sentence: "\(path) \(reason), so the monitor cannot be loaded into it",
                    status: StartFailure.notExecutable)
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

/// The part of a path after its last slash.
private func fileName(_ path: String) -> Substring {
    path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
}
