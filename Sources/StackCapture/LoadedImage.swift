/// An image (ELF file) that is mapped into this process.
package struct LoadedImage: Sendable, Hashable {
    /// The file's path, never empty for the executable.
    package var path: String
    /// The address in this process of the file's virtual address 0.
    package var base: UInt64
    /// The addresses from the image's lowest to its highest one.
    package var addresses: Range<UInt64>
    /// The bytes of the build ID; empty if the file has none.
    package var buildID: [UInt8]
    /// Whether the image is the executable.
    package var isExecutable: Bool

    package init(path: String, base: UInt64, addresses: Range<UInt64>, buildID: [UInt8], isExecutable: Bool) {
        self.path = path
        self.base = base
        self.addresses = addresses
        self.buildID = buildID
        self.isExecutable = isExecutable
    }

    /// The file's name without its directories.
    package var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}
