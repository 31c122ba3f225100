import Glibc

/// An open file that can be read repeatedly from its start.
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

    /// Reads the file's first bytes with one system call.
    ///
    /// - Parameter buffer: The buffer, whose count is the most that is read.
    /// - Returns: The number of bytes read; 0 if the file cannot be read.
    package func read(into buffer: inout [UInt8]) -> Int {
        // Never fails with EINTR: a read of /proc waits for nothing that a signal ends.
        max(pread(descriptor, &buffer, buffer.count, 0), 0)
    }
}
