import Glibc

/// A file that is kept open for reading from its start again and again.
package final class OpenFile {
    private let descriptor: Int32

    /// Opens the file at `path`; `nil` if it cannot be opened.
    package init?(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Reads from the file's start until the buffer is full.
    ///
    /// Returns how much, or 0 when it cannot be read.
    package func read(into buffer: inout [UInt8]) -> Int {
        // Never EINTR: the watchdog blocks every signal.
        max(pread(descriptor, &buffer, buffer.count, 0), 0)
    }
}
