import Dispatch
import Foundation
import Glibc

/// A FIFO to which a thread writes one byte after some time.
final class EmptyFIFO: Sendable {
    let readEnd: Int32

    init(for duration: Duration) {
        let path = "./stallwatch-fifo-\(getpid())"
        mkfifo(path, 0o600)
        readEnd = open(path, O_RDWR | O_CLOEXEC)
        unlink(path)
        // The thread retains this object, so the FIFO stays open until the byte is written.
        NamedThread.start("fifo-writer") { [self] ready in
            ready()
            sleepTooLong(for: duration)
            write(readEnd, "!", 1)
        }
    }

    deinit { close(readEnd) }
}
