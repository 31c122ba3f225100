/// The kind of a watched loop.
///
/// The raw values are the words of `loop.kind` in reports.
enum LoopKind: String, Sendable {
    case runLoop, mainQueue, dispatchQueue, globalQueue, cooperativePool, eventLoop, probe
}
