import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

/// The search for a program in PATH.
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
        let failure = #expect(throws: StartFailure.self) { try search.path(of: "only") }
        #expect(failure?.status == 126)
    }

    @Test func `a name that is nowhere is not found`() throws {
        let failure = #expect(throws: StartFailure.self) { try ProgramSearch(path: directory.path).path(of: "none") }
        #expect(failure?.status == 127)
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
