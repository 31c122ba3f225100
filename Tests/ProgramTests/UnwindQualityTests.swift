import CUnwindTestSupport
import Foundation
import TestSupport
import Testing

/// Every frame of deep stacks matches gdb's frames of the same thread.
///
/// The comparison uses return addresses, which are stricter than function names. Inlined functions have no frame.
@Suite(.needs("gdb"), .needsPtrace)
struct UnwindQualityTests {
    static let stacks = [
        "c_recursion", "c_variable_frames", "c_large_frame", "c_assembly", "c_sort_callback", "c_tree_callback",
        "c_signal_handler", "c_once",
        "cpp_virtual_templates", "cpp_catch", "cpp_unwinding", "cpp_sort_lambda", "cpp_functions",
        "swift_generics", "swift_closures", "swift_classes", "swift_sort", "swift_description", "swift_throws",
        "foundation_encode", "foundation_decode", "foundation_timer", "foundation_notification", "foundation_operation",
        "dispatch_sync", "dispatch_worker", "dispatch_apply", "dispatch_semaphore",
    ]

    @Test func everyFrameMatchesGDB() throws {
        for build in Build.allCases { try compare(build) }
    }

    private func compare(_ build: Build) throws {
        let directory = try TemporaryDirectory()
        let arguments = [try build.makeLibrary(in: directory)] + Self.stacks
        let host = try TestHost(arguments, program: Command.product("stack-host"), input: Pipe())
        defer { host.process.kill() }
        let all = Capture.all(in: host.lines(until: "ready"))
        let reference = try Self.backtraces(of: host.pid)

        for unwinder in ["libunwind", "built-in"] {
            let captures = all.filter { $0.unwinder == unwinder }
            #expect(captures.count >= Self.stacks.count)
            for capture in captures {
                let expected = reference.frames[capture.thread] ?? []
                let addresses = expected.map(\.address)
                #expect(
                    capture.addresses == addresses,
                    """
                    \(capture.stack) by \(capture.method), \(build), \(unwinder): \(capture.addresses.count) frames, and gdb \
                    has \(addresses.count) (\(reference.ends[capture.thread] ?? "?")):
                    \(Self.difference(capture.addresses, expected))
                    """
                )
                #expect(capture.isComplete, "\(capture.stack) by \(capture.method), \(build)")
            }
            let frames = captures.map(\.addresses.count).reduce(0, +)
            print("\(build), \(unwinder): \(captures.count) captures, \(frames) frames")
        }
    }

    #if arch(x86_64)
        /// lld writes no unwind information for the stubs of calls into other images.
        @Test func `the caller of a stub is found`() throws {
            let directory = try TemporaryDirectory()
            let source = try directory.write(
                "stub.c", "#include <unistd.h>\nint call_through_stub(void) { return getppid() + 1; }\n")
            let library = directory.path("libstub.so")
            try Command(
                program: try #require(Command.find("clang")),
                arguments: ["-O1", "-fPIC", "-shared", "-fuse-ld=lld", source, "-o", library]
            ).succeed()
            #expect(cunwind_test_steps_out_of_stub(library))
        }
    #endif

    /// GNU ld puts the first segment wherever it is told to.
    @Test(.needs("gcc")) func `an image whose first segment is not at its base is listed`() throws {
        let directory = try TemporaryDirectory()
        let source = try directory.write("moved.c", "int moved(void) { return 1; }\n")
        let library = directory.path("libmoved.so")
        try Command(
            program: try #require(Command.find("gcc")),
            arguments: ["-fPIC", "-shared", "-Wl,-Ttext-segment=0x10000000", source, "-o", library]
        ).succeed()
        #expect(cunwind_test_lists_library(library))
    }

    struct Frame {
        var address: UInt64
        var function: Substring
    }

    static func backtraces(of process: Int32) throws -> (frames: [Int: [Frame]], ends: [Int: Substring]) {
        let gdb = try #require(Command.find("gdb"))
        let script = Repository.support.appendingPathComponent("Stacks/backtraces.py").path
        let text = try Command(
            program: gdb,
            arguments: ["-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", "\(process)", "-x", script]
        ).succeed()
        var frames: [Int: [Frame]] = [:]
        var ends: [Int: Substring] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3)
            if words.count == 4, words[0] == "frame", let thread = Int(words[1]), let address = UInt64(words[2]) {
                frames[thread, default: []].append(Frame(address: address, function: words[3]))
            } else if words.count > 2, words[0] == "end", let thread = Int(words[1]) {
                ends[thread] = line
            }
        }
        return (frames, ends)
    }

    /// Formats the two stacks side by side, from one frame before their first difference.
    private static func difference(_ own: [UInt64], _ expected: [Frame]) -> String {
        let same = zip(own, expected).prefix { $0 == $1.address }.count
        return (max(same - 1, 0)..<max(own.count, expected.count)).prefix(12).map { index in
            let left = index < own.count ? String(own[index], radix: 16) : "-"
            let right = index < expected.count ? expected[index] : nil
            return "#\(index) \(left) | \(right.map { "\(String($0.address, radix: 16)) \($0.function)" } ?? "-")"
        }.joined(separator: "\n")
    }
}

/// The builds of the stacks, made by the compilers directly because a second build of the package would take minutes.
enum Build: CaseIterable {
    case debug
    case release
    /// Debug code, linked by GNU ld, which makes the segment with Swift's .rodata and the unwind tables writable.
    case linkedByGNU

    private static let debugObjects = Result { try objects("debug", "-O0", "-Onone") }
    private static let releaseObjects = Result { try objects("release", "-O2", "-O") }

    func makeLibrary(in directory: TemporaryDirectory) throws -> String {
        let library = directory.path("libstacks.so")
        let objects = try (self == .release ? Self.releaseObjects : Self.debugObjects).get()
        let libraries = ["-lstdc++"] + (self == .linkedByGNU ? ["-use-ld=bfd"] : [])
        try Command(
            program: try #require(Command.find("swiftc")),
            arguments: ["-emit-library", "-module-name", "Stacks"] + objects + libraries + ["-o", library]
        ).succeed()
        return library
    }

    /// Compiles the stacks with an option for C and one for Swift; returns the object files.
    private static func objects(_ name: String, _ c: String, _ swift: String) throws -> [String] {
        let sources = Repository.support.appendingPathComponent("Stacks")
        let ofC = [c, "-fPIC", "-fomit-frame-pointer", "-fstack-clash-protection"]
        let ofSwift = [swift, "-parse-as-library", "-module-name", "Stacks"]
        return try [
            ("clang", "ends.c", ofC), ("clang", "stacks.c", ofC), ("clang++", "stacks.cpp", ofC),
            ("swiftc", "stacks.swift", ofSwift),
        ].map { compiler, source, options in
            let object = "\(SymbolicationToolchain.scratch)/\(name)-\(source).o"
            let files = ["-g", "-c", sources.appendingPathComponent(source).path, "-o", object]
            try Command(program: try #require(Command.find(compiler)), arguments: options + files).succeed()
            return object
        }
    }
}

/// A stack that `stack-host` has captured.
private struct Capture {
    var unwinder: String
    var stack: String
    var method: String
    var thread: Int
    var addresses: [UInt64] = []
    var isComplete = true

    /// Reads the host's output.
    static func all(in lines: [String]) -> [Capture] {
        var captures: [Capture] = []
        var unwinder = ""
        for words in lines.map({ $0.split(separator: " ").map(String.init) }) {
            if words.count == 2, words[0] == "unwinder" { unwinder = words[1] }
            guard words.count == 4 else { continue }
            switch words[1] {
            case "thread":
                // An invalid number becomes a thread that gdb does not know.
                captures.append(
                    Capture(unwinder: unwinder, stack: words[0], method: words[3], thread: Int(words[2]) ?? 0))
            case "frame":
                guard let address = UInt64(words[3]), !captures.isEmpty else { continue }
                captures[captures.count - 1].addresses.append(address)
            case "incomplete":
                if !captures.isEmpty { captures[captures.count - 1].isComplete = false }
            default: break
            }
        }
        return captures
    }
}
