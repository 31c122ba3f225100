/// A frame's function, if it helps to identify a lock.
struct NamedFrame: Equatable, Sendable {
    /// The name without leading underscores; `nil` for a function that does not describe a wait.
    var function: String?
    /// The file name of the image; for a library that is linked into the executable, the file name of the dynamic library.
    var image: String
    /// Whether the image may contain libraries, but has no symbols to recognize their functions.
    var isUnrecognizable = false

    /// The function, if it belongs to libc.
    var libcFunction: String? { image == "libc.so.6" ? function : nil }
}
