import Glibc

/// How this process was told to treat signals when it was started, for a program that takes its place.
struct InheritedSignals {
    private let mask: sigset_t
    private let pipe: sigaction

    /// Reads them.
    ///
    /// Call it before this process changes any.
    init() {
        var mask = sigset_t()
        sigemptyset(&mask)
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        var pipe = sigaction()
        sigaction(SIGPIPE, nil, &pipe)
        self.mask = mask
        self.pipe = pipe
    }

    /// Restores them on the calling thread, right before execve(2), which resets all handlers by itself.
    func restore() {
        var (mask, pipe) = (mask, pipe)
        sigaction(SIGPIPE, &pipe, nil)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
    }
}
