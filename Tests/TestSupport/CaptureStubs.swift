package import StackCapture

extension LoadedImage {
    /// An image of which only the address range and the path matter.
    package static func stub(
        path: String, addresses: Range<UInt64>, buildID: [UInt8] = [], isExecutable: Bool = false
    ) -> LoadedImage {
        LoadedImage(
            path: path, base: addresses.lowerBound, addresses: addresses, buildID: buildID, isExecutable: isExecutable
        )
    }
}

extension CapturedStack {
    /// A complete stack with exact addresses, innermost first.
    package static func stub(_ addresses: [UInt64], method: Method = .read, state: ThreadState = .blocked)
        -> CapturedStack
    {
        CapturedStack(
            method: method, threadState: state, frames: addresses.map { Frame(address: $0, isExact: true) },
            isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0
        )
    }
}
