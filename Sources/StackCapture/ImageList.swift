import LinuxSupport

/// The images of a process at one moment, sorted by address.
package struct ImageList: Sendable, Equatable {
    package private(set) var images: [LoadedImage]

    package init(_ images: [LoadedImage] = []) {
        self.images = images.sorted { $0.addresses.lowerBound < $1.addresses.lowerBound }
    }

    package func image(at address: UInt64) -> LoadedImage? {
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
    package var isExecutable: Bool

    package init(path: String, base: UInt64, addresses: Range<UInt64>, buildID: [UInt8], isExecutable: Bool) {
        self.path = path
        self.base = base
        self.addresses = addresses
        self.buildID = buildID
        self.isExecutable = isExecutable
    }

    package var name: String { fileName(path) }
}
