import Runtime

/// Prints the cost of the Runtime module's `Backtrace.symbolicated()` in this program, and the stack.
///
/// The lines are `cold NS`, `warm NS`, `known N` (frames with a line), `image PATH BASE BUILD-ID` for each image, and
/// `frame ADDRESS` for each frame, innermost first.
public func printSymbolicatedStack() {
    var box = Box<Int>()
    box.add(CommandLine.arguments.count, 12)
}

/// Changed after each call, so that no call is a tail call, which would leave no frame.
///
/// One thread uses it.
nonisolated(unsafe) private var checksum = 0

private struct Box<Element: Hashable & Comparable> {
    var items: [Element: Int] = [:]
    var list: [Element] = []

    @inline(never) mutating func add(_ element: Element, _ depth: Int) {
        items[element, default: 0] += 1
        list.append(element)
        list.sort { $0.hashValue < $1.hashValue }
        if depth > 0 { deeper(element, depth) } else { measure() }
        checksum &+= list.count
    }

    @inline(never) mutating func deeper(_ element: Element, _ depth: Int) {
        // Functions that the optimizer inlines into one another.
        let sum = list.map { items[$0] ?? 0 }.filter { $0 > 0 }.reduce(depth) { $0 &+ $1 }
        [element].forEach { add($0, depth - 1) }
        checksum &+= sum
    }
}

private func nanoseconds(_ body: () throws -> Void) rethrows -> Int64 {
    let clock = ContinuousClock()
    let (seconds, attoseconds) = try clock.measure(body).components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
}

private func measure() {
    guard let backtrace = try? Backtrace.capture(limit: 64) else { return }
    let images = backtrace.images ?? ImageMap.capture()
    for image in images {
        let identity = (image.uniqueID ?? []).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        print("image \(image.path ?? "-") \(image.baseAddress) \(identity.isEmpty ? "-" : identity)")
    }
    for frame in backtrace.frames { print("frame \(frame.adjustedProgramCounter)") }
    var known = 0
    print("cold", nanoseconds { known = lines(of: backtrace.symbolicated(with: images)) })
    print("warm", nanoseconds { checksum &+= lines(of: backtrace.symbolicated(with: images)) })
    print("known \(known)")
}

private func lines(of backtrace: SymbolicatedBacktrace?) -> Int {
    backtrace?.frames.count { $0.symbol?.sourceLocation.map { $0.line > 0 } ?? false } ?? 0
}
