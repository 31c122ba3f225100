import LinuxSupport

/// The way in which the next work of a resting loop is noticed.
enum LoopRest: Equatable, Sendable {
    /// The loop's thread waits in epoll_wait(2), so the next event of the epoll set ends the rest.
    case events(thread: Int32, EpollWait)
    /// Threads of libdispatch run the loop, and any thread of the process may give it work or occupy it.
    case dispatch
}
