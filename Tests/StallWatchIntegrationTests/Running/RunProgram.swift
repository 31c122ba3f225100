import Foundation
import TestSupport
import Testing

@testable import StallReports

/// A program of `Tests/Support/Run`, compiled by the tests.
enum RunProgram: String, CaseIterable, Sendable {
    case glib = "glib_program.c"
    case runLoop = "run_loop.swift"
    case asyncMain = "async_main.swift"

    /// Whether this machine can compile it.
    var isAvailable: Bool { self != .glib || Self.glibOptions != nil }

    static let available = allCases.filter(\.isAvailable)

    /// The compiler's options for GLib; `nil` if its headers are not installed.
    static let glibOptions: [String]? = {
        guard let program = Command.find("pkg-config"),
            let words = try? Command(program: program, arguments: ["--cflags", "--libs", "glib-2.0"]).succeed()
        else { return nil }
        return words.split(whereSeparator: \.isWhitespace).map(String.init)
    }()

    /// The directory of the compiled programs, which lives as long as the tests.
    private static let directory = Result { try TemporaryDirectory() }
    private static let paths = Dictionary(
        uniqueKeysWithValues: available.map { program in (program, Result { try program.compile() }) })

    /// The path of the program, compiled once.
    func path() throws -> String { try #require(Self.paths[self]).get() }

    private func compile() throws -> String {
        let path = try Self.directory.get().path(rawValue.split(separator: ".")[0].description)
        let source = Repository.support.appendingPathComponent("Run/\(rawValue)").path
        if self == .glib {
            try Command(
                program: try #require(Command.find("clang")),
                arguments: ["-g", "-O1", source, "-o", path] + (Self.glibOptions ?? [])
            ).succeed()
        } else {
            let library = self == .asyncMain ? ["-parse-as-library"] : []
            try Command(
                program: try #require(Command.find("swiftc")),
                arguments: ["-g", "-Onone", "-swift-version", "6", "-module-name", "Program", source, "-o", path]
                    + library
            ).succeed()
        }
        return path
    }
}
