package import StackCapture

extension LoadedImage {
    /// Returns an image for tests that depend only on its path and addresses.
    package static func stub(
        path: String, addresses: Range<UInt64>, buildID: [UInt8] = [], isExecutable: Bool = false
    ) -> LoadedImage {
        LoadedImage(
            path: path, base: addresses.lowerBound, addresses: addresses, buildID: buildID, isExecutable: isExecutable
        )
    }
}

extension CapturedStack {
    /// Returns a complete stack with exact addresses, innermost first.
    package static func stub(_ addresses: [UInt64], method: Method = .read, state: ThreadState = .blocked)
        -> CapturedStack
    {
        CapturedStack(
            method: method, threadState: state, frames: addresses.map { Frame(address: $0, isExact: true) },
            isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0
        )
    }
}
