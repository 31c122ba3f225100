import Glibc
import StallReports

/// Cuts a file or a pipe into JSON documents: by the first line, one a line (NDJSON), or with any indentation.
///
/// A broken document ends where a later line begins with a brace, so the next one is still found.
final class DocumentStream {
    /// The bytes of one document, which may not be JSON.
    struct Document: Equatable {
        var bytes: [UInt8]
        var line: Int
    }

    private static let lineFeed = UInt8(ascii: "\n")
    private let read: (Int) throws(CommandFailure) -> [UInt8]
    private let limit: Int
    /// Whether there is one document a line; `nil` before the first one.
    private var isLines: Bool?
    private var buffer: [UInt8] = []
    private var start = 0
    private var line = 1
    private var isAtEnd = false
    /// Whether everything up to the beginning of the next document is skipped.
    private var isLost = false

    /// `isLines` if the input is known to have one document a line; `read` returns the next bytes, none at the end.
    init(
        isLines: Bool, limit: Int = StallReport.maximumBytes, read: @escaping (Int) throws(CommandFailure) -> [UInt8]
    ) {
        self.isLines = isLines ? true : nil
        self.limit = limit
        self.read = read
    }

    /// Returns the next document, `nil` at the end; one over the limit is cut, so that its reader sees that.
    func next() throws(CommandFailure) -> Document? {
        guard try skipBlanks() else { return nil }
        if isLines == nil { isLines = try firstLineIsDocument() }
        return try isLines == true ? nextLine() : nextDocument()
    }

    private func firstLineIsDocument() throws(CommandFailure) -> Bool {
        let end = try endOfLine()
        var scan = JSONScan()
        let close = buffer[start..<end].firstIndex { byte in
            scan.advance(over: byte)
            return scan.state != .open
        }
        guard let close, scan.state == .closed else { return false }
        return buffer[(close + 1)..<end].allSatisfy(Self.isBlank)
    }

    private func nextLine() throws(CommandFailure) -> Document {
        let end = try endOfLine()
        let document = Document(bytes: Array(buffer[start..<min(end, start + limit + 1)]), line: line)
        if end - start > limit { try skipLine() } else { advance(to: end) }
        return document
    }

    private func nextDocument() throws(CommandFailure) -> Document {
        var scan = JSONScan()
        var length = 0
        while true {
            while scan.state == .open, length <= limit, start + length < buffer.count {
                scan.advance(over: buffer[start + length])
                length += 1
            }
            guard scan.state == .open, length <= limit, try fill() else { break }
        }
        if scan.state == .closed, length <= limit {
            let document = Document(bytes: Array(buffer[start..<start + length]), line: line)
            advance(to: start + length)
            return document
        }
        let next = nextBeginning() ?? buffer.count
        let document = Document(bytes: Array(buffer[start..<min(next, start + limit + 1)]), line: line)
        isLost = next == buffer.count
        advance(to: isLost ? lastLineFeed : next)
        return document
    }

    private func nextBeginning() -> Int? {
        var place = start
        while let end = lineFeed(from: place, to: buffer.count), end + 1 < buffer.count {
            if buffer[end + 1] == UInt8(ascii: "{") { return end + 1 }
            place = end + 1
        }
        return nil
    }

    /// The buffer's end, or the line feed right before it: a brace may still follow that.
    private var lastLineFeed: Int {
        buffer.count > start && buffer.last == Self.lineFeed ? buffer.count - 1 : buffer.count
    }

    /// The index of the next line feed or of the end, or one that is past the limit.
    private func endOfLine() throws(CommandFailure) -> Int {
        var searched = start
        while true {
            if let end = lineFeed(from: searched, to: buffer.count) { return end }
            let done = buffer.count - start
            if done > limit { return buffer.count }
            guard try fill() else { return buffer.count }
            searched = start + done
        }
    }

    private func skipLine() throws(CommandFailure) {
        while true {
            if let end = lineFeed(from: start, to: buffer.count) { return advance(to: end) }
            advance(to: buffer.count)
            guard try fill() else { return }
        }
    }

    /// Skips blanks, and the rest of a broken document; returns whether anything is left.
    private func skipBlanks() throws(CommandFailure) -> Bool {
        while true {
            if isLost {
                if let next = nextBeginning() {
                    advance(to: next)
                    isLost = false
                } else {
                    advance(to: lastLineFeed)
                }
            } else {
                advance(to: buffer[start...].firstIndex { !Self.isBlank($0) } ?? buffer.count)
            }
            if start < buffer.count, !isLost { return true }
            guard try fill() else { return false }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0a ~= byte || byte == 0x0d }

    private func advance(to place: Int) {
        while let end = lineFeed(from: start, to: place) {
            line += 1
            start = end + 1
        }
        start = place
    }

    /// By memchr(3): in a debug build, looking at each byte made most of the time of `top` over large files.
    private func lineFeed(from begin: Int, to end: Int) -> Int? {
        guard begin < end else { return nil }
        return buffer.withUnsafeBytes { bytes in
            // The part is within the buffer, which has bytes, so its address is not nil.
            guard let address = bytes.baseAddress,
                let found = memchr(address + begin, Int32(Self.lineFeed), end - begin)
            else { return nil }
            return UnsafeRawPointer(found) - address
        }
    }

    private func fill() throws(CommandFailure) -> Bool {
        guard !isAtEnd else { return false }
        let count = min(max(buffer.count - start, 1 << 16), 1 << 22)
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        let more = try read(count)
        isAtEnd = more.isEmpty
        buffer += more
        return !isAtEnd
    }
}
