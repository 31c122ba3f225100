/// An image (ELF file) mapped into this process.
struct LoadedImage: Sendable, Hashable {
    /// The file's path; of the executable too.
    var path: String
    /// The address that the file's virtual address 0 has here.
    var base: UInt64
    /// The lowest address of the image and the first one past it.
    var addresses: Range<UInt64>
    /// The build ID in lower-case hexadecimal; `nil` if the file has none.
    var buildID: String?
    /// Whether it is the executable itself.
    var isExecutable: Bool

    /// The file's name without its directories.
    var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}

/// The images of a process at one moment, sorted by address.
struct ImageList: Sendable, Equatable {
    private(set) var images: [LoadedImage]

    init(_ images: [LoadedImage] = []) {
        self.images = images.sorted { $0.addresses.lowerBound < $1.addresses.lowerBound }
    }

    /// The image that `address` lies in.
    func image(at address: UInt64) -> LoadedImage? {
        var low = 0
        var high = images.count
        while low < high {
            let middle = (low + high) / 2
            if images[middle].addresses.lowerBound <= address { low = middle + 1 } else { high = middle }
        }
        guard low > 0, images[low - 1].addresses.contains(address) else { return nil }
        return images[low - 1]
    }
}
