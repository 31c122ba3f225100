import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// Debug files from a server, requested only if the caller permits it, and within the caller's time limit.
///
/// The client runs in a separate process, because libdebuginfod reads its servers and cache from the environment.
@Suite("Debug files from debuginfod", .needsToolchain, .serialized)
struct SymbolicationDebuginfodTests {
    @Test(
        "a stripped executable and a debuginfod server give the unstripped result",
        .enabled(if: Command.find("debuginfod") != nil, "debuginfod is not installed"))
    func fromAServer() async throws {
        let parts = try SymbolicationParts()
        let directory = try TemporaryDirectory()
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
        let parts = try SymbolicationParts()
        let directory = try TemporaryDirectory()
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
        #expect((1500...3000).contains(result.milliseconds), "\(result.milliseconds) ms")
        #expect(result.report.frames == report.frames)
    }

    @Test("no server is contacted by default, even with servers in the environment")
    func notByDefault() async throws {
        let parts = try SymbolicationParts()
        let directory = try TemporaryDirectory()
        let server = try SilentServer()
        let report = parts.report(imageAt: try parts.alone(in: directory))
        let result = try await symbolicated(report, server.url, in: directory, usesDebuginfod: false)
        #expect(!server.wasAsked)
        #expect(result.report.frames == report.frames)
        #expect(result.report.images.allSatisfy { $0.reason != nil })
    }

    private struct Answer: Codable {
        var report: StallReport
        var milliseconds: Double
    }

    /// Symbolicates the report in a process with these servers in its environment.
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
                with: StallReport.DebugSources(usesDebuginfod: usesDebuginfod, timeLimit: .milliseconds(limit))
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
