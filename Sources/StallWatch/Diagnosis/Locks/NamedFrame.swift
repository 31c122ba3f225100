/// A frame's function, as far as it is needed to tell locks apart.
struct NamedFrame: Equatable, Sendable {
    /// Without the underscores that it begins with; `nil` for one that tells nothing of a wait.
    var function: String?
    /// The file name of the image; of a function of a library that is linked into the executable, that of the library when
    /// it is linked dynamically.
    var image: String
    /// Whether the image may have libraries linked into it and no symbols that tell which function is whose.
    var isUnrecognizable = false

    /// The function, if it is one of libc.
    var libcFunction: String? { image == "libc.so.6" ? function : nil }
}
