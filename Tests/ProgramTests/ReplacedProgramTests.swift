import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

/// Programs that call execve(2) in a stalled turn, where ptrace is refused.
@Suite(.serialized) struct ReplacedProgramTests {
    private static let runs = 200
    /// More than this machine's processors: the threads compete, as the calls of execve(2) have to meet samples.
    private static let lanes = 6

    /// SIGPROF ended 8 programs of 300: it was pending when execve(2) removed the handler.
    @Test func `no signal of the monitor ends a replaced program`() throws {
        let directory = try TemporaryDirectory()
        let library = try Preload.forbid.make(in: directory)
        let ends = Mutex<[String: Int]>([:])
        DispatchQueue.concurrentPerform(iterations: Self.lanes) { lane in
            for run in stride(from: lane, to: Self.runs, by: Self.lanes) {
                let end: String
                do {
                    let host = try TestHost(
                        ["replace-in-stall", directory.path, "\(run * 15)"],
                        wrapper: ["FORBID_CALLS=ptrace:1", "LD_PRELOAD=\(library)"])
                    _ = host.finish()
                    end = "\(host.process.terminationReason.rawValue) \(host.process.terminationStatus)"
                } catch {
                    end = "\(error)"
                }
                ends.withLock { $0[end, default: 0] += 1 }
            }
        }
        let exits = "\(Process.TerminationReason.exit.rawValue) 0"
        ends.withLock { #expect($0 == [exits: Self.runs]) }
    }
}
