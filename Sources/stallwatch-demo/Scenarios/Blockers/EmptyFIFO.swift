import Dispatch
import Foundation
import Glibc

/// A FIFO that a thread writes one byte to after a while.
final class EmptyFIFO: Sendable {
    let readEnd: Int32

    init(for duration: Duration) {
        let path = "./stallwatch-fifo-\(getpid())"
        mkfifo(path, 0o600)
        readEnd = open(path, O_RDWR | O_CLOEXEC)
        unlink(path)
        // Which keeps the FIFO open, also where nobody waits for the byte any more.
        NamedThread.start("fifo-writer") { [self] ready in
            ready()
            sleepTooLong(for: duration)
            write(readEnd, "!", 1)
        }
    }

    deinit { close(readEnd) }
}
