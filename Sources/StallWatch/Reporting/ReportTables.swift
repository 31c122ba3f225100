import StackCapture
import StallSymbols
import StallReports

/// The tables of a report: each distinct stack, frame and image once.
struct ReportTables {
    var stacks: [[Int]] = []
    var frames: [StallReport.Frame] = []
    var images: [StallReport.Image] = []
    private var stackIndices: [[Int]: Int] = [:]
    private var frameIndices: [StallReport.Frame: Int] = [:]
    private var imageIndices: [StallReport.Image: Int] = [:]
    private let inApp: InAppSettings

    init(inApp: InAppSettings) {
        self.inApp = inApp
    }

    /// Adds a stack, with its frames and images, and returns its index.
    mutating func stack(_ stack: CapturedStack, in list: ImageList) -> Int {
        let rule = InAppRule(inApp, imagePaths: list.images.lazy.map(\.path))
        let indices = stack.frames.map { frame in
            let address = frame.lookupAddress
            guard let image = list.image(at: address) else {
                return add(
                    StallReport.Frame(image: nil, offset: "0x" + hexadecimal(address), isInApp: false, kind: .code)
                )
            }
            let isInApp = rule.isInApp(imageAt: image.path, isExecutable: image.isExecutable)
            return add(
                StallReport.Frame(
                    image: add(image, isInApp: isInApp), offset: "0x" + hexadecimal(address &- image.base),
                    isInApp: isInApp, kind: frame.kind == .code ? .code : .asyncCaller,
                    isTaskStart: frame.kind == .taskStart ? true : nil
                )
            )
        }
        if let known = stackIndices[indices] { return known }
        stacks.append(indices)
        stackIndices[indices] = stacks.count - 1
        return stacks.count - 1
    }

    private mutating func add(_ frame: StallReport.Frame) -> Int {
        if let known = frameIndices[frame] { return known }
        frames.append(frame)
        frameIndices[frame] = frames.count - 1
        return frames.count - 1
    }

    private mutating func add(_ loaded: LoadedImage, isInApp: Bool) -> Int {
        let image = StallReport.Image(
            name: loaded.name, path: loaded.path, buildID: loaded.buildIDText,
            baseAddress: "0x" + hexadecimal(loaded.base), isInApp: isInApp
        )
        if let known = imageIndices[image] { return known }
        images.append(image)
        imageIndices[image] = images.count - 1
        return images.count - 1
    }
}
