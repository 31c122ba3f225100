internal import CSymbols
import Glibc

/// Asks debuginfod servers for debug files, until a total time limit is reached.
final class DebuginfodClient {
    /// In nanoseconds of CLOCK_MONOTONIC, for all queries until it is set anew.
    var deadline: UInt64
    private var isExhausted = false

    init(deadline: UInt64) {
        self.deadline = deadline
    }

    /// The debug file of a build ID, or `nil` if no server has it, or none answered in time.
    func debugFile(buildID: String) -> ELFFile? {
        let digits = Array(buildID.utf8)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
        }
        guard !isExhausted, bytes.count * 2 == digits.count else { return nil }
        let descriptor = csymbols_debuginfod_open(bytes, bytes.count, deadline)
        // A server that does not answer is not asked again, nor is a library that is not there.
        isExhausted = descriptor == -ETIME || descriptor == -ENOSYS
        return descriptor < 0 ? nil : ELFFile(descriptor: descriptor, path: "the debug file of \(buildID)")
    }
}
