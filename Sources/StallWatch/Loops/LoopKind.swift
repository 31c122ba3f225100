/// What kind of loop is watched.
///
/// The raw values are the words of the report's `loop.kind`.
enum LoopKind: String, Sendable {
    case runLoop, mainQueue, dispatchQueue, globalQueue, cooperativePool, eventLoop, probe
}
