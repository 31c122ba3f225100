import Dispatch
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

/// Programs that `stallwatch run` does not start.
@Suite struct RunBadInputTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Runs the tool and expects one sentence, a status, and that nothing has been started.
    private func expect(
        _ words: [String], status: Int32, _ sentence: String, options: [String] = [], before: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let tool = try before.isEmpty ? Command.product("stallwatch") : copyOfTool()
        let all = before + [tool, "run"] + options + ["--"] + words
        let output = try Command(program: "/usr/bin/env", arguments: all, directory: directory.path).run()
        #expect(output.status == status, "\(output.text)", sourceLocation: sourceLocation)
        #expect(output.errors == "Error: \(sentence)\n", sourceLocation: sourceLocation)
        #expect(output.output == "", sourceLocation: sourceLocation)
        #expect(!FileManager.default.fileExists(atPath: directory.path("stalls")), sourceLocation: sourceLocation)
    }

    /// The tool and its libraries where every user may read them: the repository may be in a home directory of mode 0700.
    private func copyOfTool() throws -> String {
        let files = FileManager.default
        let own = URL(fileURLWithPath: try Command.product("stallwatch"))
        for name in ["stallwatch", "libStallWatchAgent.so", "libStallWatchPreload.so"]
        where !files.fileExists(atPath: directory.path(name)) {
            let product = own.deletingLastPathComponent().appendingPathComponent(name)
            try files.copyItem(atPath: product.path, toPath: directory.path(name))
        }
        return directory.path("stallwatch")
    }

    private func compile(_ name: String, _ options: [String] = []) throws -> String {
        let source = try directory.write(
            "\(name).c", "#include <stdio.h>\nint main(void) { return puts(\"started\") < 0; }\n")
        let path = directory.path(name)
        try Command(program: try #require(Command.find("clang")), arguments: [source, "-o", path] + options).succeed()
        return path
    }

    @Test func `a program that does not exist is not found`() throws {
        try expect(["./none"], status: 127, "./none cannot be started: No such file or directory")
        try expect(
            ["no-such-program"], status: 127,
            "no-such-program is not found in PATH: give the program's path, such as ./no-such-program")
    }

    @Test func `a file that is no program is not executable`() throws {
        let text = try directory.write("text", "no program\n")
        try expect(
            [text], status: 126,
            "\(text) is not executable: make it so with chmod +x, or name the program that reads it")
        chmod(text, 0o755)
        try expect(
            [text], status: 126,
            "\(text) is neither an ELF file nor a script that begins with #!: name the program that reads it")
        try expect([directory.path], status: 126, "\(directory.path) is a directory: name a program")
    }

    @Test func `a static program is refused, also as an interpreter`() throws {
        let program = try compile("static", ["-static"])
        let sentence = "\(program) is linked statically, so the monitor cannot be loaded into it"
        try expect([program], status: 126, sentence)
        let script = try directory.write("script", "#!\(program)\n")
        chmod(script, 0o755)
        try expect([script], status: 126, sentence)
    }

    @Test func `a program for another C library is refused`() throws {
        let linker = "/lib/ld-musl-x86_64.so.1"
        let program = try compile("musl", ["-Wl,--dynamic-linker=\(linker)"])
        try expect(
            [program], status: 126,
            "\(program) is built for another C library than glibc (its dynamic linker is \(linker)), "
                + "so the monitor cannot be loaded into it")
    }

    /// The bytes are those of e_machine (EM_S390) and of EI_CLASS (ELFCLASS32).
    @Test(arguments: [(18, 22), (4, 1)] as [(Int, UInt8)])
    func `a program for another architecture is refused`(offset: Int, value: UInt8) throws {
        let program = try compile("other")
        var bytes = try #require(FileManager.default.contents(atPath: program))
        bytes[offset] = value
        try directory.write("other", bytes)
        chmod(program, 0o755)
        try expect(
            [program], status: 126,
            "\(program) is built for another architecture, so the monitor cannot be loaded into it")
    }

    @Test(.enabled(if: getuid() == 0, "only root may give a file away"))
    func `a program that changes its user or group is refused`() throws {
        for (mode, reason) in [(0o4755, "user (set-user-ID)"), (0o2755, "group (set-group-ID)")] as [(mode_t, String)] {
            let program = try compile("privileged")
            #expect(chown(program, 65_534, 65_534) == 0 && chmod(program, mode) == 0)
            try expect(
                [program], status: 126,
                "\(program) changes the \(reason), so the monitor cannot be loaded into it")
        }
    }

    @Test(.enabled(if: getuid() == 0, "only root may change to another user"))
    func `a program that gains capabilities or cannot be read is refused`() throws {
        let program = try compile("capable")
        // struct vfs_cap_data, version 2: effective, and CAP_NET_RAW permitted (linux/capability.h).
        let script =
            "import os, struct, sys; os.setxattr(sys.argv[1], 'security.capability', struct.pack('<5I', 0x2000001, 1 << 13, 0, 0, 0))"
        try Command(program: "/usr/bin/env", arguments: ["python3", "-c", script, program]).succeed()
        let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        let output = ["--output", "/tmp"]
        try expect(
            [program], status: 126,
            "\(program) gains capabilities (setcap), so the monitor cannot be loaded into it", options: output,
            before: other)
        let secret = try compile("secret")
        chmod(secret, 0o711)
        try expect(
            [secret], status: 126,
            "\(secret) cannot be checked, so it is not started: \(secret) cannot be opened: Permission denied",
            options: output, before: other)
    }

    @Test func `a program with its own Swift runtime is refused`() throws {
        let whole = try SymbolicationFixture.release.get()
        let stripped = directory.path("stripped")
        try Command(program: try #require(Command.find("strip")), arguments: ["-o", stripped, whole]).succeed()
        for program in [whole, stripped] {
            try expect(
                [program], status: 126,
                "\(program) has the Swift runtime linked into it, so the monitor cannot be loaded into it")
        }
    }

    @Test func `reports in the place of a file are refused before the start`() throws {
        let file = try directory.write("file", "")
        for path in [file, "\(file)/reports"] {
            try expect(["true"], status: 73, "\(path) cannot be written: Not a directory", options: ["--output", path])
        }
    }

    @Test(.enabled(if: getuid() == 0, "only root may change to another user"))
    func `a directory without permission is refused before the start`() throws {
        let path = directory.path("closed")
        mkdir(path, 0o755)
        try expect(
            ["true"], status: 77, "\(path)/reports cannot be written: Permission denied",
            options: ["--output", "\(path)/reports"],
            before: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    }
}

/// Programs that call execve(2) in a stalled turn, where ptrace is refused.
@Suite struct ReplacedProgramTests {
    private static let runs = rounds(40)
    /// More than this machine's processors: the threads compete, as the calls of execve(2) have to meet samples.
    private static let lanes = 6

    /// SIGPROF ended 8 programs of 300: it was pending when execve(2) removed the handler.
    @Test func `no signal of the monitor ends a replaced program`() throws {
        let directory = try TemporaryDirectory()
        let library = try Preload.forbid.make(in: directory)
        let ends = Mutex<[String: Int]>([:])
        // After the threshold, in microseconds.
        let longest = 3_000
        DispatchQueue.concurrentPerform(iterations: Self.lanes) { lane in
            for run in stride(from: lane, to: Self.runs, by: Self.lanes) {
                let end: String
                do {
                    let host = try TestHost(
                        ["replace-in-stall", directory.path, "\(run * longest / Self.runs)"],
                        wrapper: ["FORBID_CALLS=ptrace:1", "LD_PRELOAD=\(library)"])
                    _ = host.finish()
                    end = "\(host.process.terminationReason.rawValue) \(host.process.terminationStatus)"
                } catch {
                    end = "\(error)"
                }
                ends.withLock { $0[end, default: 0] += 1 }
            }
        }
        let exits = "\(Process.TerminationReason.exit.rawValue) 0"
        ends.withLock { #expect($0 == [exits: Self.runs]) }
    }
}
