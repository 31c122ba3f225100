/// A loop that a monitor can watch.
public struct WatchedLoop: Sendable {
    enum Source: Sendable {
        case mainRunLoop
    }
    let source: Source
    /// The name that reports give the loop.
    public let label: String

    /// The main thread's run loop, `RunLoop.main`, in its common modes.
    ///
    /// It is watched from the next time that it is entered or leaves its wait. Between two runs (`while !done {
    /// RunLoop.main.run(mode:before:) }`) it is not.
    public static let mainRunLoop = WatchedLoop(source: .mainRunLoop, label: "main")
}
