/// An ELF file that addresses are looked up in.
package struct ImageIdentity: Sendable, Hashable {
    /// The file's path when it was mapped.
    package var path: String
    /// The build ID in lower-case hexadecimal; `nil` if the file has none.
    package var buildID: String?
    /// Whether it is the executable of this process, which /proc finds even when its file has been moved or deleted.
    package var isOwnExecutable = false

    package init(
        path: String,
        buildID: String? = nil,
        isOwnExecutable: Bool = false
    ) {
        self.path = path
        self.buildID = buildID
        self.isOwnExecutable = isOwnExecutable
    }
}
