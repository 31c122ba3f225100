/// Whose code a function is.
enum CodeOwner: Equatable {
    /// The root package's.
    case app
    /// A package's that the app depends on, or a library's that was compiled elsewhere.
    case dependency
    /// The system's, the Swift toolchain's, or ours.
    case library
}
