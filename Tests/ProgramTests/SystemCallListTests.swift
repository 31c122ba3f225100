import Foundation
import TestSupport
import Testing

/// SECURITY.md lists the system calls of the monitor, and strace(1) shows them.
///
/// A process has one tracer, so captures by ptrace fail under strace and their calls are not seen.
@Suite struct SystemCallListTests {
    @Test(.enabled(if: Command.find("strace") != nil, "strace is not installed"))
    func `every system call of the monitor is listed in SECURITY.md`() throws {
        let listed = try Self.listedCalls()
        try #require(listed.count > 20)
        let directory = try TemporaryDirectory()
        let file = try directory.write("pages", [UInt8](repeating: 7, count: 1 << 20))
        let stalls = try Self.trace(["main-stalls", directory.path("reports"), "50", "150", file], in: directory)
        let ofThreads = stalls.callsOfMonitor
        try #require(ofThreads.isSuperset(of: ["futex", "pread64", "openat", "rename", "fsync"]))
        #expect(ofThreads.subtracting(listed).sorted() == [])
        // What start() and stop() do on the program's own thread.
        let bare = try Self.trace(["turns", "timer", "20", "bare"], in: directory)
        let monitored = try Self.trace(["turns", "timer", "20", "monitored"], in: directory)
        let ofCaller = monitored.callsOfMain.subtracting(bare.callsOfMain)
        #expect(ofCaller.subtracting(listed).sorted() == [])
    }

    /// The words in code style of the section "System calls".
    private static func listedCalls() throws -> Set<String> {
        let text = try String(
            contentsOf: Repository.root.appendingPathComponent("SECURITY.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## System calls\n").dropFirst().first)
        let words = section.components(separatedBy: "\n## ")[0].split(separator: "`", omittingEmptySubsequences: false)
        return Set(words.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) })
    }

    private static func trace(_ arguments: [String], in directory: TemporaryDirectory) throws -> Trace {
        let output = directory.path("trace")
        _ = try TestHost(arguments, wrapper: ["strace", "-f", "-qq", "-o", output]).finish()
        return Trace(try String(contentsOfFile: output, encoding: .utf8))
    }

    /// The system calls of each thread.
    private struct Trace {
        private var calls: [Substring: Set<String>] = [:]
        /// The threads of the monitor, by the names that they give themselves, and what these start.
        private var monitor: Set<Substring> = []
        private var main: Substring?

        init(_ text: String) {
            var parents: [(parent: Substring, child: Substring)] = []
            for line in text.split(separator: "\n") {
                let words = line.split(separator: " ", maxSplits: 1)
                guard words.count == 2 else { continue }
                let (thread, rest) = (words[0], words[1].drop { $0 == " " })
                if main == nil { main = thread }
                if rest.contains("PR_SET_NAME, \"stallwatch-") { monitor.insert(thread) }
                if rest.contains("clone") || rest.contains("vfork"), let result = rest.split(separator: " ").last,
                    Int(result) != nil
                {
                    parents.append((thread, result))
                }
                let name = rest.prefix { $0.isLowercase || $0.isNumber || $0 == "_" }
                guard !name.isEmpty, rest.dropFirst(name.count).first == "(" else { continue }
                calls[thread, default: []].insert(String(name))
            }
            for (parent, child) in parents where monitor.contains(parent) { monitor.insert(child) }
        }

        var callsOfMonitor: Set<String> { monitor.reduce(into: []) { $0.formUnion(calls[$1] ?? []) } }
        var callsOfMain: Set<String> { main.flatMap { calls[$0] } ?? [] }
    }
}
