/// The form in which reports contain file paths.
public struct PathStyle: Sendable, Equatable {
    private enum Value { case full, fileNames }
    private let value: Value

    /// Full paths.
    public static let full = PathStyle(value: .full)
    /// File names without directories.
    ///
    /// Build IDs still identify the files.
    public static let fileNames = PathStyle(value: .fileNames)
}
