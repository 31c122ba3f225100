import StackCapture
import StallReports
import StallSymbols

extension LoadedImage {
    /// The build ID in lower-case hexadecimal, the form that reports use; `nil` if the file has none.
    var buildIDText: String? { buildID.isEmpty ? nil : hexadecimal(buildID) }
}

extension ImageIdentity {
    /// Creates the identity of an image that is mapped into this process.
    init(_ image: LoadedImage) {
        self.init(path: image.path, buildID: image.buildIDText, isOwnExecutable: image.isExecutable)
    }
}
