import CUnwindTestSupport
import Foundation
import Glibc
import StackCapture
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// A stripped executable with its debug file gives the same result as the unstripped one.
@Suite("Debug files", .needsToolchain)
struct SymbolicationDebugFileTests {
    private let parts: SymbolicationParts

    init() throws { parts = try SymbolicationParts.shared.get() }

    @Test("found by build ID")
    func byBuildID() throws {
        let directory = try parts.directory("by-id")
        let path = "\(directory)/.build-id/\(parts.buildID.prefix(2))/\(parts.buildID.dropFirst(2)).debug"
        try place(parts.debugFile, at: path)
        // Use a separate directory, where .gnu_debuglink finds no file.
        try place(parts.stripped, at: "\(directory)/bin/mixed")
        let report = parts.report(imageAt: "\(directory)/bin/mixed")
        try parts.expectWhole(report.symbolicated(with: OfflineSymbolication(directories: [directory])))
        let unnamed = report.symbolicated()
        #expect(unnamed.images.map(\.reason) == ["no debug information was found"])
    }

    @Test("found by the name in .gnu_debuglink, beside the image")
    func byDebugLink() throws {
        let directory = try parts.directory("linked")
        try place(parts.stripped, at: "\(directory)/mixed")
        try place(parts.debugFile, at: "\(directory)/.debug/mixed.debug")
        let report = parts.report(imageAt: "\(directory)/mixed")
        try parts.expectWhole(report.symbolicated())
    }

    @Test("found by .gnu_debuglink's checksum where there is no build ID, and only then")
    func byChecksum() throws {
        let directory = try parts.directory("checksum")
        for (part, name) in [(parts.stripped, "mixed"), (parts.debugFile, "mixed.debug")] {
            try SymbolicationToolchain.run(
                "llvm-objcopy", ["--remove-section=.note.gnu.build-id", part, "\(directory)/\(name)"]
            )
        }
        try SymbolicationToolchain.run("llvm-objcopy", ["--remove-section=.gnu_debuglink", "\(directory)/mixed"])
        try SymbolicationToolchain.run(
            "llvm-objcopy", ["--add-gnu-debuglink=\(directory)/mixed.debug", "\(directory)/mixed"]
        )
        let report = parts.report(imageAt: "\(directory)/mixed", buildID: nil)
        #expect(report.symbolicated().frames == (try parts.expected()).frames)
        // One more byte changes the checksum.
        let handle = try #require(FileHandle(forWritingAtPath: "\(directory)/mixed.debug"))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data([0]))
        try handle.close()
        let unnamed = report.symbolicated()
        #expect(unnamed.frames.allSatisfy { $0.file == nil })
        #expect(unnamed.images.allSatisfy { $0.reason == "no debug information was found" })
    }

    @Test("a debug file of another build is not used")
    func wrongBuild() throws {
        let directory = try parts.directory("wrong")
        try place(parts.debugFile, at: "\(directory)/mixed.debug")
        let other = String(parts.buildID.reversed())
        let report = parts.report(imageAt: "/nowhere/mixed", buildID: other)
        let named = report.symbolicated(with: OfflineSymbolication(directories: [directory]))
        #expect(named.frames == report.frames)
        #expect(named.images.allSatisfy { $0.reason?.contains("No such file") == true })
    }

    @Test("symbolicating twice changes nothing")
    func isIdempotent() throws {
        let once = try parts.expected()
        #expect(once.symbolicated() == once)
        // Symbolication without the files keeps the known names.
        var elsewhere = once
        for index in elsewhere.images.indices { elsewhere.images[index].path = "/nowhere/mixed" }
        #expect(elsewhere.symbolicated().frames == once.frames)
    }

    private func place(_ file: String, at path: String) throws {
        let manager = FileManager.default
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        try manager.createDirectory(atPath: directory, withIntermediateDirectories: true)
        if manager.fileExists(atPath: path) { try manager.removeItem(atPath: path) }
        try manager.copyItem(atPath: file, toPath: path)
    }
}

/// Call frame information that is in no segment.
@Suite(.needs("gcc"), .needs("objcopy"), .needs("strip")) struct DebugFrameTests {
    private let directory = TemporaryDirectory.ofTest()

    enum Place: CaseIterable { case file, debugFile, nowhere }

    @Test func `captures get it from the file or its debug file`() throws {
        let libraries = try Place.allCases.map { (place: $0, path: try library("\($0)", $0)) }
        for library in libraries { _ = cunwind_test_finds_function(library.path, "described") }
        let images = try CUnwindEngine().images()
        for library in libraries where library.place != .nowhere {
            let isFound = eventually {
                // Again, because it may be reading another test's images.
                DebugFrames.prepare(for: images)
                return cunwind_test_finds_function(library.path, "described")
            }
            #expect(isFound, "\(library.place)")
        }
        #expect(!cunwind_test_finds_function(libraries.last?.path ?? "", "described"))
    }

    @Test func `it is not taken from another file, nor where it is compressed`() throws {
        let library = try library("changed", .file)
        let image = ImageIdentity(path: library, buildID: try ELFFile(path: library).buildID())
        #expect(image.buildID != nil && ELFFile.debugFrame(of: image) != nil)
        let other = ImageIdentity(path: library, buildID: image.buildID.map { String($0.reversed()) })
        #expect(ELFFile.debugFrame(of: other) == nil)
        try run("objcopy", ["--compress-debug-sections=zlib", library])
        #expect(ELFFile.debugFrame(of: image) == nil)
    }

    /// Makes a library with a function that only `.debug_frame` describes.
    private func library(_ name: String, _ place: Place) throws -> String {
        // Several, because a section is compressed only if that makes it smaller.
        let functions = (0..<50).map { "int extra\($0)(int *x) { return described(x) + \($0); }\n" }.joined()
        let source = try directory.write(
            "\(name).c", "int described(int *x) { int y[9]; y[*x] = 1; return y[x[1]]; }\n" + functions)
        let library = directory.path("lib\(name).so")
        let options = ["-g", "-fPIC", "-shared", "-fno-asynchronous-unwind-tables", "-Wl,--build-id", "-gz=none"]
        try run("gcc", options + [source, "-o", library])
        guard place != .file else { return library }
        try run("objcopy", ["--only-keep-debug", library, library + ".debug"])
        try run("strip", [library])
        try run("objcopy", ["--add-gnu-debuglink=\(library).debug", library])
        if place == .nowhere { try FileManager.default.removeItem(atPath: library + ".debug") }
        return library
    }

    private func run(_ program: String, _ arguments: [String]) throws {
        try Command(program: try #require(Command.find(program)), arguments: arguments).succeed()
    }
}

/// Debug files from a server, requested only if the caller permits it, and within the caller's time limit; the client
/// runs in a separate process, because libdebuginfod reads its servers and cache from the environment.
@Suite("Debug files from debuginfod", .needsToolchain)
struct SymbolicationDebuginfodTests {
    private let directory = TemporaryDirectory.ofTest()
    private let parts: SymbolicationParts

    init() throws { parts = try SymbolicationParts.shared.get() }

    @Test(
        "a stripped executable and a debuginfod server give the unstripped result",
        .needs("debuginfod"))
    func fromAServer() async throws {
        let served = directory.path("served")
        try FileManager.default.createDirectory(atPath: served, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: parts.debugFile, toPath: served + "/mixed.debug")
        let server = try DebuginfodServer(of: served, in: directory)
        defer { server.end() }
        #expect(try server.waits(for: parts.buildID))

        let result = try await symbolicated(
            parts.report(imageAt: try parts.alone(in: directory)), server.url, in: directory
        )
        try parts.expectWhole(result.report)
    }

    @Test("a server that never answers costs at most the time limit")
    func fromASilentServer() async throws {
        let server = try SilentServer()
        var report = parts.report(imageAt: try parts.alone(in: directory))
        // Three images whose debug files must all be requested.
        report.images += (1...2).map { number in
            var image = report.images[0]
            image.buildID = String(repeating: "\(number)", count: 40)
            image.path = "/nowhere/\(number)"
            return image
        }
        for index in report.frames.indices { report.frames[index].image = index % 3 }
        let result = try await symbolicated(report, server.url, in: directory, limitMilliseconds: 3000)
        #expect(server.wasAsked)
        // The client's own limit is 90 s for each image.
        #expect((1_500...60_000).contains(result.milliseconds), "\(result.milliseconds) ms")
        #expect(Self.withoutOwners(result.report.frames) == Self.withoutOwners(report.frames))
    }

    @Test("no server is contacted by default, even with servers in the environment")
    func notByDefault() async throws {
        let server = try SilentServer()
        let report = parts.report(imageAt: try parts.alone(in: directory))
        let result = try await symbolicated(report, server.url, in: directory, usesDebuginfod: false)
        #expect(!server.wasAsked)
        #expect(Self.withoutOwners(result.report.frames) == Self.withoutOwners(report.frames))
        #expect(result.report.images.allSatisfy { $0.reason != nil })
    }

    /// Without debug information, whose code a frame is goes by the image's path.
    private static func withoutOwners(_ frames: [StallReport.Frame]) -> [StallReport.Frame] {
        frames.map { frame in
            var frame = frame
            (frame.isInApp, frame.isDependency) = (false, nil)
            return frame
        }
    }

    private struct Answer: Codable {
        var report: StallReport
        var milliseconds: Double
    }

    private func symbolicated(
        _ report: StallReport, _ url: String, in directory: TemporaryDirectory, usesDebuginfod: Bool = true,
        limitMilliseconds: Int = 60_000
    ) async throws -> Answer {
        let question = directory.path("question.json")
        let answer = directory.path("answer.json")
        try JSONEncoder().encode(report).write(to: URL(fileURLWithPath: question))
        await #expect(processExitsWith: .success) {
            [
                url = url as String, cache = directory.path("cache") as String, question = question as String,
                answer = answer as String, usesDebuginfod = usesDebuginfod as Bool,
                limit = limitMilliseconds as Int
            ] in
            setenv("DEBUGINFOD_URLS", url, 1)
            setenv("DEBUGINFOD_CACHE_PATH", cache, 1)
            let report = try JSONDecoder().decode(
                StallReport.self, from: Data(contentsOf: URL(fileURLWithPath: question))
            )
            let begin = monotonicNow()
            let named = report.symbolicated(
                with: OfflineSymbolication(usesDebuginfod: usesDebuginfod, timeLimit: .milliseconds(limit))
            )
            let milliseconds = Double(monotonicNow() - begin) / 1e6
            try JSONEncoder().encode(Answer(report: named, milliseconds: milliseconds))
                .write(to: URL(fileURLWithPath: answer))
        }
        return try JSONDecoder().decode(Answer.self, from: Data(contentsOf: URL(fileURLWithPath: answer)))
    }
}

extension SymbolicationParts {
    /// Copies the stripped executable into a directory without its debug file.
    fileprivate func alone(in directory: TemporaryDirectory) throws -> String {
        let path = directory.path("bin/mixed")
        try FileManager.default.createDirectory(atPath: directory.path("bin"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: stripped, toPath: path)
        return path
    }
}

/// Debian's debuginfod on the loopback address, serving the files of one directory.
final class DebuginfodServer {
    private let process: Process
    private let port: UInt16

    var url: String { "http://127.0.0.1:\(port)" }

    init(of files: String, in directory: TemporaryDirectory) throws {
        port = try LoopbackSocket().port
        process = Command(
            program: try #require(Command.find("debuginfod")),
            arguments: [
                "--scan-file-dir", "--database=:memory:", "--port=\(port)", "--rescan-time=0", "--groom-time=0",
                "--concurrency=1", files,
            ],
            // Before elfutils 0.190, debuginfod has no option for the address to listen on.
            environment: ["LD_PRELOAD": try Preload.loopback.make(in: directory), "TMPDIR": directory.path("")]
        ).process()
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run(atMost: Process.timeout)
    }

    /// Waits up to five minutes until the server has found the debug file of that build ID.
    func waits(for buildID: String) throws -> Bool {
        let script = """
            ask() {
                exec 3<>/dev/tcp/127.0.0.1/\(port) || exit
                printf 'GET /buildid/\(buildID)/debuginfo HTTP/1.0\\r\\n\\r\\n' >&3
                head -n 1 <&3 | grep '^HTTP/1.1 200 '
            }
            for ((n = 0; n < 3000; n++)); do
                if (ask) 2>/dev/null; then exit; fi
                sleep 0.1
            done
            exit 1
            """
        return try Command(program: "/bin/bash", arguments: ["-c", script]).run().status == 0
    }

    func end() {
        process.kill()
        process.waitUntilExit()
    }
}

final class SilentServer {
    private let socket: LoopbackSocket

    var url: String { "http://127.0.0.1:\(socket.port)" }

    init() throws {
        socket = try LoopbackSocket()
        guard listen(socket.descriptor, 16) == 0 else { throw Command.Failure(description: "listen: \(errno)") }
    }

    var wasAsked: Bool {
        var poll = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&poll, 1, 0) == 1
    }
}

/// A TCP socket at a free port of the loopback address; closed when this object is released.
private final class LoopbackSocket {
    let descriptor: Int32
    let port: UInt16

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
            // A sockaddr_in may be passed as a sockaddr (ip(7)).
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 ? getsockname(descriptor, address, &length) : -1
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard status == 0 else {
            throw Command.Failure(description: "a loopback socket: \(String(cString: strerror(errno)))")
        }
    }

    deinit { close(descriptor) }
}
