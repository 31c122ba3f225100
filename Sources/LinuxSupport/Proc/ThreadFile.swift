import Glibc

/// The files in /proc/<pid>/task/<tid> that diagnoses and captures read.
package enum ThreadFile: String, CaseIterable, Sendable {
    case syscall, wchan, schedstat, stat, status, stack

    /// The result of reading such a file.
    package enum Answer: Equatable, Sendable {
        case shown
        /// The file is there, and does not show its value.
        case hidden
        /// The file cannot be opened.
        case missing(errno: Int32)
    }

    /// Reads the file of a thread.
    ///
    /// The thread must be waiting: `wchan` and `stack` are empty for a running thread.
    ///
    /// - Parameter directory: The thread's directory.
    /// - Returns: Whether the file shows its value.
    package func read(in directory: String) -> Answer {
        guard let text = readSmallFile("\(directory)/\(rawValue)") else { return .missing(errno: errno) }
        return isShown(text) ? .shown : .hidden
    }

    /// Returns whether the text contains the file's value.
    func isShown(_ text: String) -> Bool {
        var cursor = ByteCursor(text)
        switch self {
        // "running", or numbers.
        case .syscall: return cursor.next != nil
        // The kernel writes "0" for a thread that does not wait, and for a reader without permission.
        case .wchan: return cursor.word().map { $0 != "0" } ?? false
        // A kernel that does not count shows zeros.
        case .schedstat:
            guard cursor.number() != nil, cursor.number() != nil, let slices = cursor.number() else { return false }
            return slices > 0
        case .stat: return ProcessStat(text) != nil
        case .status: return cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:") && cursor.number() != nil
        case .stack: return cursor.next != nil
        }
    }
}
