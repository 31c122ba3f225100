import Dispatch
import Foundation
import Glibc

/// A file that another descriptor of this process has locked for some time.
final class HeldFileLock: Sendable {
    let descriptor: Int32

    init(for duration: Duration) {
        let path = "./stallwatch-lock-\(getpid())"
        let other = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        descriptor = open(path, O_RDWR | O_CLOEXEC)
        unlink(path)
        flock(other, LOCK_EX)
        NamedThread.start("file-holder") { ready in
            ready()
            sleepTooLong(for: duration)
            close(other)
        }
    }

    deinit { close(descriptor) }
}
