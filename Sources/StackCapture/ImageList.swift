/// The images of a process at one moment, sorted by address.
package struct ImageList: Sendable, Equatable {
    package private(set) var images: [LoadedImage]

    package init(_ images: [LoadedImage] = []) {
        self.images = images.sorted { $0.addresses.lowerBound < $1.addresses.lowerBound }
    }

    /// Returns the image that contains `address`; `nil` if there is none.
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
