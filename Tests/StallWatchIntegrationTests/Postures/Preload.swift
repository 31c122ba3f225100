import Foundation
import TestSupport
import Testing

/// A small shared library, compiled by the tests and preloaded into a program to change its behavior.
enum Preload: String {
    /// See Tests/Support/Preload/forbid.c.
    case forbid
    /// See Tests/Support/Preload/hide.c.
    case hide
    /// See Tests/Support/Preload/allocations.c.
    case allocations
    /// See Tests/Support/Preload/exception_owner.c.
    case exceptionOwner = "exception_owner"
    /// See Tests/Support/Preload/loopback.c.
    case loopback
    /// See Tests/Support/Preload/span.c.
    case span

    /// Compiles the library into `directory` and returns its path.
    func make(in directory: TemporaryDirectory) throws -> String {
        let library = directory.path("\(rawValue).so")
        let source = Repository.support.appendingPathComponent("Preload/\(rawValue).c").path
        try Command(
            program: try #require(Command.find("clang")),
            arguments: ["-shared", "-fPIC", "-Wall", "-Wextra", source, "-o", library]
        ).succeed()
        return library
    }
}
