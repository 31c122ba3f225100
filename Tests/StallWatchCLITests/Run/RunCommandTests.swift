import ArgumentParser
import Foundation
import LinuxSupport
import TestSupport
import Testing

@testable import StallSymbols
@testable import StallWatchCLI

@Suite struct RunSettingsTests {
    private func settings(_ variables: [RunSettings.Variable: String] = [:]) throws -> RunSettings {
        try RunSettings { variables[$0] }
    }

    @Test func `each setting has a default`() throws {
        let settings = try settings()
        #expect(settings.text == "250000000 7 0 0" && settings.output == "stalls", "\(settings)")
    }

    @Test func `each command has a short form of its output option`() throws {
        #expect(try RunCommand.parse(["-o", "x", "--", "true"]).output == "x")
        #expect(try TestCommand.parse(["-o", "x", "--", "true"]).output == "x")
    }

    @Test func `a program needs no -- before it, and keeps its options`() throws {
        for words in [["--quiet", "gedit", "--quiet"], ["--quiet", "--", "gedit", "--quiet"]] {
            let command = try RunCommand.parse(words)
            #expect(command.quiet)
            #expect(try ProgramWords.program(of: command.words) == ["gedit", "--quiet"])
        }
        let test = try TestCommand.parse(["--after", "2m", "swift", "test", "--", "--fail"])
        #expect(!test.fail && test.after.milliseconds == 120_000)
        #expect(try ProgramWords.program(of: test.words) == ["swift", "test", "--", "--fail"])
        #expect(throws: (any Error).self) { try RunCommand.parse(["--treshold", "1s", "gedit"]) }
        #expect(try ProgramWords.program(of: ["--", "-x"]) == ["-x"], "a program with a strange name")
    }

    @Test func `variables do the same as options`() throws {
        let variables: [RunSettings.Variable: String] = [
            .threshold: "1s", .output: "/x", .loop: "glib", .children: "1", .quiet: "1",
        ]
        let settings = try settings(variables)
        #expect(settings.text == "1000000000 4 1 1" && settings.output == "/x", "\(settings)")
    }

    @Test func `an option comes before its variable`() throws {
        let variables: [RunSettings.Variable: String] = [
            .threshold: "1s", .output: "b", .loop: "glib", .children: "0", .quiet: "0",
        ]
        let settings = try RunSettings(
            threshold: DurationArgument(milliseconds: 5), output: "a", loop: .runLoop, children: true, quiet: true
        ) { variables[$0] }
        #expect(settings.text == "5000000 1 1 1" && settings.output == "a", "\(settings)")
    }

    @Test func `an empty variable counts as not set`() throws {
        #expect(try settings([.threshold: "", .children: ""]) == settings())
    }

    @Test(
        arguments: [
            (.threshold, "soon", "STALLWATCH_THRESHOLD: 'soon' is not a duration."),
            (.threshold, "4.9ms", "The threshold is 4.9ms: give a value from 5ms to 24h."),
            (.loop, "epoll", "STALLWATCH_LOOP: 'epoll' is no loop: give auto, run-loop, main-queue or glib."),
            (.children, "yes", "STALLWATCH_CHILDREN: 'yes' is neither 1 nor 0."),
        ] as [(RunSettings.Variable, String, String)])
    func `a wrong value is one sentence`(variable: RunSettings.Variable, value: String, sentence: String) throws {
        let error = #expect(throws: ValidationError.self) { try settings([variable: value]) }
        #expect(error?.message.hasPrefix(sentence) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [(LoopChoice.auto, 7), (.runLoop, 1), (.mainQueue, 2), (.glib, 4)] as [(LoopChoice, Int32)])
    func `each choice of loops has its bits`(choice: LoopChoice, bits: Int32) {
        #expect(choice.bits == bits)
    }
}

/// The environment of a program, which stays as it is but for the variables of the tool.
@Suite struct ProcessEnvironmentTests {
    private static func bytes(_ entries: [String]) -> [[UInt8]] { entries.map { Array($0.utf8) } }

    @Test func `a variable is replaced in its place`() {
        var environment = ProcessEnvironment(Self.bytes(["A=1", "LD_PRELOAD=/x", "B=2"]))
        environment.set("LD_PRELOAD", "/y:/x")
        environment.set("C", "3")
        #expect(environment.entries == Self.bytes(["A=1", "LD_PRELOAD=/y:/x", "B=2", "C=3"]))
    }

    @Test func `only the variable of that name is removed`() {
        var environment = ProcessEnvironment(Self.bytes(["STALLWATCH_LOOP=glib", "STALLWATCH_LOOPS=1", "LOOP"]))
        environment.remove("STALLWATCH_LOOP")
        #expect(environment.entries == Self.bytes(["STALLWATCH_LOOPS=1", "LOOP"]))
    }

    @Test func `bytes that are not UTF-8 stay`() {
        let entry = Array("A=".utf8) + [0xff, 0xfe]
        var environment = ProcessEnvironment([entry])
        environment.set("B", "1")
        #expect(environment.entries.first == entry)
        environment.set("TMPDIR", pathText([0x2f, 0xff]))
        #expect(environment.entries.last == Array("TMPDIR=/".utf8) + [0xff])
    }
}

/// What is found out about a program before it is started.
@Suite struct ProgramFileTests {
    @Test(
        arguments: [
            ("#!/bin/sh\n", ["/bin/sh"]), ("#! /bin/sh -eu \t\nx", ["/bin/sh", "-eu"]),
            ("#!/usr/bin/env -S python3 -u\n", ["/usr/bin/env", "-S python3 -u"]), ("#!/bin/sh", ["/bin/sh"]),
            ("#!  \n/bin/sh\n", []), ("/bin/sh\n", nil), ("", nil),
        ] as [(String, [String]?)])
    func `a script's first line is split as the kernel does`(text: String, words: [String]?) {
        #expect(ProgramFile.words(ofFirstLine: Array(text.utf8)) == words)
    }

    @Test func `a script's interpreter may be below a directory that is not UTF-8`() {
        let path: [UInt8] = [0x2f, 0xe9, 0x2f, 0x73, 0x68]
        let line: [UInt8] = [0x23, 0x21] + path + [0x20, 0x2d, 0x65, 0x0a]
        #expect(ProgramFile.words(ofFirstLine: line) == [pathText(path), "-e"])
    }

    @Test(
        arguments: [
            ("python3", "python3"), ("-S A=1 python3 -u", "python3"), ("-i python3", "python3"), ("", nil), ("-S", nil),
        ] as [(String, String?)])
    func `the program of env is its first word that is no option`(argument: String, program: String?) {
        #expect(RunnableProgram.programOfEnv(argument) == program)
    }

    @Test(arguments: [
        (ELFFile.Program(machine: 0, interpreter: nil, hasStaticSwift: false), "is built for another architecture"),
        (.here(nil), "is linked statically"),
        (
            .here("/lib/ld-musl-x86_64.so.1"),
            "another C library than glibc (its dynamic linker is /lib/ld-musl-x86_64.so.1)"
        ),
        (.here(ELFFile.Program.ownInterpreter, hasStaticSwift: true), "has the Swift runtime linked into it"),
    ]) func `a program that cannot be monitored has a reason`(program: ELFFile.Program, reason: String) {
        #expect(RunnableProgram.reason(against: program)?.contains(reason) == true)
    }

    @Test func `this program can be monitored`() throws {
        let program = try ELFFile(path: "/proc/self/exe").program()
        #expect(RunnableProgram.reason(against: program) == nil)
        #expect(program == .here(ELFFile.Program.ownInterpreter))
    }

    @Test func `a damaged file is refused and says so`() throws {
        let directory = try TemporaryDirectory()
        var bytes = Array(try #require(FileManager.default.contents(atPath: "/bin/true")))
        // e_phoff (elf(5)).
        bytes.replaceSubrange(32..<40, with: [UInt8](repeating: 0xff, count: 8))
        let path = try directory.write("damaged", bytes)
        let failure = #expect(throws: CommandFailure.self) { try ProgramFile(path: path) }
        #expect(failure?.status == .notExecutable)
        #expect(failure?.sentence.hasPrefix("\(path) cannot be checked, so it is not started: ") == true)
    }

    @Test func `a script that names itself is refused`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("loop")
        try directory.write("loop", "#!\(path)\n")
        chmod(path, 0o755)
        let failure = #expect(throws: CommandFailure.self) {
            try RunnableProgram(path, search: ProgramSearch(path: nil))
        }
        #expect(failure?.sentence.contains("more than 5 interpreters") == true)
    }
}

extension ELFFile.Program {
    static let ownInterpreter = (try? ELFFile(path: "/proc/self/exe").program())?.interpreter

    static func here(_ interpreter: String?, hasStaticSwift: Bool = false) -> ELFFile.Program {
        #if arch(arm64)
            let machine = UInt16(EM_AARCH64)
        #else
            let machine = UInt16(EM_X86_64)
        #endif
        return ELFFile.Program(machine: machine, interpreter: interpreter, hasStaticSwift: hasStaticSwift)
    }
}

/// The privileges for which the dynamic linker ignores LD_PRELOAD.
@Suite struct ProgramPrivilegesTests {
    @Test(
        arguments: [
            (ProgramPrivileges(), 1_000, nil), (ProgramPrivileges(user: 1_000, group: 1_000), 1_000, nil),
            (ProgramPrivileges(user: 0), 1_000, "changes the user (set-user-ID)"),
            (ProgramPrivileges(group: 42), 1_000, "changes the group (set-group-ID)"),
            (ProgramPrivileges(hasCapabilities: true), 1_000, "gains capabilities (setcap)"),
            (ProgramPrivileges(hasCapabilities: true), 0, nil), (ProgramPrivileges(user: 0, group: 0), 0, nil),
        ] as [(ProgramPrivileges, UInt32, String?)])
    func `a gain of privileges is a reason`(privileges: ProgramPrivileges, id: UInt32, reason: String?) {
        #expect(privileges.reasonAgainstPreload(user: id, group: id) == reason)
    }
}

@Suite struct ProgramSearchTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        for (name, mode) in [("a/plain", 0o644), ("b/plain", 0o755), ("a/only", 0o644)] as [(String, mode_t)] {
            chmod(try directory.write(name, ""), mode)
        }
    }

    @Test func `an executable file is preferred to an earlier one that is not`() throws {
        let search = ProgramSearch(path: "\(directory.path)/none:\(directory.path)/a:\(directory.path)/b")
        #expect(try search.path(of: "plain") == "\(directory.path)/b/plain")
    }

    @Test func `a file that is not executable is said to be so`() throws {
        let search = ProgramSearch(path: "\(directory.path)/a")
        let failure = #expect(throws: CommandFailure.self) { try search.path(of: "only") }
        #expect(failure?.status == .notExecutable)
    }

    @Test func `a name that is nowhere is not found`() throws {
        let failure = #expect(throws: CommandFailure.self) { try ProgramSearch(path: directory.path).path(of: "none") }
        #expect(failure?.status == .notFound)
    }

    @Test func `a name with a slash is a path`() throws {
        let path = "\(directory.path)/b/plain"
        #expect(try ProgramSearch(path: "/nowhere").path(of: path) == path)
    }

    @Test func `an empty entry is the current directory`() {
        #expect(ProgramSearch(path: "/bin::").directories == ["/bin", ".", "."])
        #expect(ProgramSearch(path: nil).directories == ["/bin", "/usr/bin"])
    }
}
