import Foundation
import TestSupport
import Testing

/// The ways in which the scenarios are compiled.
enum AsyncBuild: String, CaseIterable, Sendable {
    case debug
    case debugStripped
    case release
    case releaseStripped

    /// The library with symbols, compiled once per build.
    private static let whole = Dictionary(
        uniqueKeysWithValues: [debug, release].map { build in (build, Result { try build.compile() }) }
    )
    private static let libraries = Dictionary(
        uniqueKeysWithValues: allCases.map { build in (build, Result { try build.load() }) }
    )

    /// Returns the library, loaded once.
    func library() throws -> AsyncLibrary { try #require(Self.libraries[self]).get() }

    private var path: String { "\(SymbolicationToolchain.scratch)/async-\(rawValue).so" }

    private func compile() throws -> String {
        let source = Repository.support.appendingPathComponent("AsyncScenarios/async_scenarios.swift").path
        try SymbolicationToolchain.run(
            "swiftc",
            [
                self == .debug ? "-Onone" : "-O", "-g", "-swift-version", "6", "-parse-as-library", "-emit-library",
                "-module-name", "Scenarios", source, "-o", path, "-Xlinker", "--build-id",
                // Like the package manager on Linux: async frames are found by their frame pointers.
                "-Xcc", "-fno-omit-frame-pointer",
            ]
        )
        return path
    }

    private func load() throws -> AsyncLibrary {
        let isDebug = self == .debug || self == .debugStripped
        let symbols = try #require(Self.whole[isDebug ? .debug : .release]).get()
        if path != symbols { try SymbolicationToolchain.run("llvm-objcopy", ["--strip-all", symbols, path]) }
        return try AsyncLibrary(path: path, symbols: symbols)
    }
}
