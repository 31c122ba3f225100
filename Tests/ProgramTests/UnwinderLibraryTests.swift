import Foundation
import TestSupport
import Testing

@testable import StallReports

/// What loading libunwind does to a program, and what a library of its name does that is another.
@Suite struct UnwinderLibraryTests {
    /// Runs a program with one stall.
    ///
    /// - Returns: Its report.
    private func stall(in directory: TemporaryDirectory, environment: [String]) throws -> StallReport {
        let host = try TestHost(
            ["stalls", directory.path("reports"), "50", "1", "200", "200"], wrapper: environment)
        #expect(host.finish().last == "S 1")
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("reports"))
        let file = try #require(names.first { $0.hasPrefix("stall-") })
        return try directory.report("reports/\(file)")
    }

    /// With `RTLD_GLOBAL`, or linked, libunwind would take over `_Unwind_RaiseException` and the like.
    @Test func `libunwind changes no binding of a program`() throws {
        func bindings(_ unwinder: String) throws -> Set<String> {
            let directory = try TemporaryDirectory()
            let report = try stall(
                in: directory,
                environment: [
                    "LD_BIND_NOW=1", "LD_DEBUG=bindings", "LD_DEBUG_OUTPUT=\(directory.path("bindings"))",
                    "STALLWATCH_UNWINDER=\(unwinder)",
                ])
            #expect(report.monitor.unwinder?.hasPrefix(unwinder == "builtin" ? "built-in" : "libunwind") == true)
            var found: Set<String> = []
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path)
            where name.hasPrefix("bindings.") {
                let text = try String(contentsOfFile: directory.path(name), encoding: .utf8)
                for line in text.split(separator: "\n") where line.contains("`_Unwind_") || line.contains("`backtrace")
                {
                    // The number of the process comes first.
                    found.insert(line.split(separator: ":", maxSplits: 1).last.map(String.init) ?? "")
                }
            }
            return found
        }
        let without = try bindings("builtin")
        let with = try bindings("compared")
        try #require(without.contains { $0.contains("`_Unwind_Resume'") }, "\(without)")
        let added = with.subtracting(without).filter { !Self.isOfLibunwind($0) }
        #expect(without.subtracting(with) == [])
        #expect(added == [])
    }

    /// Whether the file whose symbol is bound is libunwind itself.
    private static func isOfLibunwind(_ line: String) -> Bool {
        line.split(separator: " ").first { $0.hasPrefix("/") }?.contains("libunwind") ?? false
    }

    @Test func `a library with libunwind's functions that steps elsewhere is not used`() throws {
        let directory = try TemporaryDirectory()
        let library = try Preload.foreignUnwinder.make(in: directory)
        #if arch(arm64)
            let name = "libunwind-aarch64.so.8"
        #else
            let name = "libunwind-x86_64.so.8"
        #endif
        try FileManager.default.moveItem(atPath: library, toPath: directory.path(name))
        let libraries = [directory.path, ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"]].compactMap(\.self)
        let report = try stall(
            in: directory, environment: ["LD_LIBRARY_PATH=\(libraries.joined(separator: ":"))"])
        #expect(report.monitor.unwinder == "built-in")
        #expect(report.culprit?.function.contains("stallOnce") == true, "\(report.culprit?.function ?? "none")")
    }
}
