/// Stacks, frames and images, each kept once.
struct ReportTables {
    var stacks: [[Int]] = []
    var frames: [StallReport.Frame] = []
    var images: [StallReport.Image] = []
    private var stackIndices: [[Int]: Int] = [:]
    private var frameIndices: [StallReport.Frame: Int] = [:]
    private var imageIndices: [StallReport.Image: Int] = [:]

    mutating func stack(_ stack: CapturedStack, in list: ImageList, _ symbolicator: any Symbolicating) -> Int {
        let inApp = InAppRule(images: list)
        let indices = stack.frames.map { frame in
            let address = frame.lookupAddress
            guard let image = list.image(at: address) else {
                return add(
                    StallReport.Frame(
                        image: nil, offset: "0x" + hexadecimal(address), function: nil, symbol: nil, isInApp: false,
                        kind: .code
                    )
                )
            }
            let symbol = symbolicator.symbol(at: address &- image.base, in: image)
            return add(
                StallReport.Frame(
                    image: add(image),
                    offset: "0x" + hexadecimal(address &- image.base),
                    function: symbol.map(Demangler.functionName),
                    symbol: symbol,
                    isInApp: inApp.isInApp(image),
                    kind: .code
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

    private mutating func add(_ loaded: LoadedImage) -> Int {
        let image = StallReport.Image(
            name: loaded.name, path: loaded.path, buildID: loaded.buildID,
            baseAddress: "0x" + hexadecimal(loaded.base)
        )
        if let known = imageIndices[image] { return known }
        images.append(image)
        imageIndices[image] = images.count - 1
        return images.count - 1
    }
}
