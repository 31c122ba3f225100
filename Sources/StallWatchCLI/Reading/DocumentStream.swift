import StallReports
import Glibc

/// Cuts a file or a pipe into JSON documents.
///
/// Two forms are known by their first line: one document a line (NDJSON), or documents one after another, however they are
/// indented (`cat stalls/*.json | stallwatch top -`). One that is broken does not take the next one with it: what comes
/// begins on a line of its own, with a brace.
final class DocumentStream {
    /// A document as far as it can be told from others; whether it is one is for those who read it.
    struct Document: Equatable {
        var bytes: [UInt8]
        /// The line that it begins at, from 1.
        var line: Int
    }

    private enum Form { case lines, documents }

    private static let lineFeed = UInt8(ascii: "\n")
    private let read: (Int) throws(CommandFailure) -> [UInt8]
    private let limit: Int
    private var form: Form?
    private var buffer: [UInt8] = []
    /// Where in the buffer it goes on.
    private var start = 0
    private var line = 1
    private var isAtEnd = false
    /// Whether everything up to the next document's beginning is to be passed over.
    private var isLost = false

    /// - Parameters:
    ///   - isLines: Whether it is known to have one document a line.
    ///   - limit: The most bytes that a document may have.
    ///   - read: Gives the next bytes, none at the end.
    init(
        isLines: Bool, limit: Int = StallReport.maximumBytes, read: @escaping (Int) throws(CommandFailure) -> [UInt8]
    ) {
        form = isLines ? .lines : nil
        self.limit = limit
        self.read = read
    }

    /// The next document; `nil` at the end.
    ///
    /// One over the limit is cut off one byte behind it, so that whoever reads it sees that it is too large.
    func next() throws(CommandFailure) -> Document? {
        guard try skipBlanks() else { return nil }
        if form == nil { form = try firstForm() }
        return try form == .lines ? nextLine() : nextDocument()
    }

    private func firstForm() throws(CommandFailure) -> Form {
        let end = try endOfLine()
        var scanner = JSONScanner(Array(buffer[start..<min(end, start + limit)]))
        let isWhole = (try? scanner.skipValue()) != nil && (try? scanner.end()) != nil
        return isWhole ? .lines : .documents
    }

    private func nextLine() throws(CommandFailure) -> Document {
        let end = try endOfLine()
        let document = Document(bytes: Array(buffer[start..<min(end, start + limit + 1)]), line: line)
        if end - start > limit { try skipLine() } else { advance(to: end) }
        return document
    }

    private func nextDocument() throws(CommandFailure) -> Document {
        while true {
            var scanner = JSONScanner(buffer, from: start)
            var fault: JSONFault?
            do throws(JSONFault) { try scanner.skipValue() } catch { fault = error }
            let end = scanner.position
            // The buffer is only copied on a change if somebody else still has it.
            scanner = JSONScanner([])
            guard let fault else {
                let document = Document(bytes: Array(buffer[start..<end]), line: line)
                advance(to: end)
                return document
            }
            if fault.isAtEnd, buffer.count - start <= limit, try fill() { continue }
            let next = nextBeginning() ?? buffer.count
            let document = Document(bytes: Array(buffer[start..<min(next, start + limit + 1)]), line: line)
            isLost = next == buffer.count
            advance(to: isLost ? lastLineFeed : next)
            return document
        }
    }

    /// The place behind the next line feed that has an opening brace behind it.
    private func nextBeginning() -> Int? {
        var place = start
        while let end = buffer[place...].firstIndex(of: Self.lineFeed), end + 1 < buffer.count {
            if buffer[end + 1] == UInt8(ascii: "{") { return end + 1 }
            place = end + 1
        }
        return nil
    }

    /// The end, or the line feed right before it, behind which a brace may still come.
    private var lastLineFeed: Int {
        buffer.count > start && buffer.last == Self.lineFeed ? buffer.count - 1 : buffer.count
    }

    /// The place of the next line feed, of the end, or of more than the limit.
    private func endOfLine() throws(CommandFailure) -> Int {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: Self.lineFeed) { return end }
            let done = buffer.count - start
            if done > limit { return buffer.count }
            guard try fill() else { return buffer.count }
            searched = start + done
        }
    }

    private func skipLine() throws(CommandFailure) {
        while true {
            if let end = buffer[start...].firstIndex(of: Self.lineFeed) { return advance(to: end) }
            advance(to: buffer.count)
            guard try fill() else { return }
        }
    }

    /// Passes over blanks, and over what is lost.
    ///
    /// Returns whether there is anything left.
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
                var scanner = JSONScanner(buffer, from: start)
                scanner.skipBlanks()
                let place = scanner.position
                scanner = JSONScanner([])
                advance(to: place)
            }
            if start < buffer.count, !isLost { return true }
            guard try fill() else { return false }
        }
    }

    private func advance(to place: Int) {
        line += buffer[start..<place].count { $0 == Self.lineFeed }
        start = place
    }

    /// Reads more; returns whether there was any.
    private func fill() throws(CommandFailure) -> Bool {
        guard !isAtEnd else { return false }
        // As much again as there is: what is scanned anew after each piece is then twice the whole at most.
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
