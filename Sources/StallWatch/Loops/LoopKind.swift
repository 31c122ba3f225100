/// The kind of a watched loop.
///
/// The raw values are the words of `loop.kind` in reports.
enum LoopKind: String, Sendable {
    case runLoop, mainQueue, dispatchQueue, globalQueue, cooperativePool, eventLoop, probe

    /// Whether the loop reports its own turns; of others, a turn is the time until a heartbeat has run.
    var reportsTurns: Bool { self == .runLoop || self == .probe }
}
