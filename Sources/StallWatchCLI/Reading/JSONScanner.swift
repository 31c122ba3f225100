import Glibc

/// What is not JSON, and where.
struct JSONFault: Error, Equatable {
    /// The byte.
    let position: Int
    /// What is wrong there.
    let reason: String
    /// Whether more bytes might have made it right.
    var isAtEnd = false
}

/// Reads JSON (RFC 8259) strictly from its beginning to its end, and passes over what is not wanted without storing it.
///
/// A report is mostly stacks, and most commands need twenty fields of it: this takes a tenth of the time of decoding it.
struct JSONScanner {
    /// Arrays and objects in each other; a report has 6.
    static let maximumDepth = 100

    private let bytes: [UInt8]
    /// The next byte.
    private(set) var position: Int
    private var isFirst = false

    init(_ bytes: [UInt8], from position: Int = 0) {
        self.bytes = bytes
        self.position = position
    }

    // MARK: - Containers

    /// The next value has to be an object; ``nextKey()`` then gives its keys.
    mutating func beginObject() throws(JSONFault) { try begin(UInt8(ascii: "{"), "an object") }

    /// The next value has to be an array; ``nextElement()`` then leads to its elements.
    mutating func beginArray() throws(JSONFault) { try begin(UInt8(ascii: "["), "an array") }

    /// The next key of the object that was begun last, whose value has to be read then; `nil` at the object's end.
    mutating func nextKey() throws(JSONFault) -> String? {
        guard try advance(before: UInt8(ascii: "}")) else { return nil }
        let key = try string()
        skipBlanks()
        guard take(UInt8(ascii: ":")) else { throw fault("a colon is missing") }
        return key
    }

    /// Whether there is another element, which has to be read then, in the array that was begun last.
    mutating func nextElement() throws(JSONFault) -> Bool { try advance(before: UInt8(ascii: "]")) }

    private mutating func begin(_ bracket: UInt8, _ what: String) throws(JSONFault) {
        skipBlanks()
        guard take(bracket) else { throw fault("\(what) is expected") }
        isFirst = true
    }

    private mutating func advance(before bracket: UInt8) throws(JSONFault) -> Bool {
        skipBlanks()
        if take(bracket) {
            isFirst = false
            return false
        }
        guard isFirst || take(UInt8(ascii: ",")) else { throw fault("a comma is missing") }
        isFirst = false
        skipBlanks()
        return true
    }

    // MARK: - Values

    /// The next value's text.
    mutating func string() throws(JSONFault) -> String {
        skipBlanks()
        let begin = position + 1
        let hasEscapes = try skipString()
        let content = bytes[begin..<position - 1]
        return hasEscapes ? try JSONEscapes.decode(content, at: begin) : String(decoding: content, as: UTF8.self)
    }

    /// The next value's number.
    mutating func number() throws(JSONFault) -> Double {
        skipBlanks()
        let begin = position
        try skipNumber()
        let text = String(decoding: bytes[begin..<position], as: UTF8.self)
        guard let value = Double(text), value.isFinite else {
            throw JSONFault(position: begin, reason: "\(text) is too large")
        }
        return value
    }

    /// The next value's whole number.
    mutating func integer<Integer: FixedWidthInteger>() throws(JSONFault) -> Integer {
        skipBlanks()
        let begin = position
        try skipNumber()
        let text = String(decoding: bytes[begin..<position], as: UTF8.self)
        // `1e3` and `5.0` are whole numbers too.
        guard let integer = Integer(text) ?? Double(text).flatMap(Integer.init(exactly:)) else {
            throw JSONFault(position: begin, reason: "a whole number is expected")
        }
        return integer
    }

    /// Whether the next value is `null`; it is passed over then.
    mutating func null() throws(JSONFault) -> Bool {
        skipBlanks()
        guard position < bytes.count, bytes[position] == UInt8(ascii: "n") else { return false }
        try skipWord("null")
        return true
    }

    /// Nothing may come any more.
    mutating func end() throws(JSONFault) {
        skipBlanks()
        guard position == bytes.count else { throw fault("there is something behind its end") }
    }

    // MARK: - Passing over

    /// Passes over the next value.
    mutating func skipValue(depth: Int = 0) throws(JSONFault) {
        skipBlanks()
        guard position < bytes.count else { throw fault("a value is missing") }
        switch bytes[position] {
        case UInt8(ascii: "\""): _ = try skipString()
        case UInt8(ascii: "{"):
            try checkDepth(depth)
            try beginObject()
            while try advance(before: UInt8(ascii: "}")) {
                guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
                    throw fault("a key is expected")
                }
                _ = try skipString()
                skipBlanks()
                guard take(UInt8(ascii: ":")) else { throw fault("a colon is missing") }
                try skipValue(depth: depth + 1)
            }
        case UInt8(ascii: "["):
            try checkDepth(depth)
            try beginArray()
            while try nextElement() { try skipValue(depth: depth + 1) }
        case UInt8(ascii: "t"): try skipWord("true")
        case UInt8(ascii: "f"): try skipWord("false")
        case UInt8(ascii: "n"): try skipWord("null")
        default: try skipNumber()
        }
    }

    private func checkDepth(_ depth: Int) throws(JSONFault) {
        guard depth < Self.maximumDepth else { throw JSONFault(position: position, reason: "it is nested too deeply") }
    }

    /// The next byte, which is not taken; 0 at the end.
    var nextByte: UInt8 { position < bytes.count ? bytes[position] : 0 }

    mutating func skipBlanks() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x0a, 0x0d, 0x09: position += 1
            default: return
            }
        }
    }

    /// Returns whether the string has escapes.
    private mutating func skipString() throws(JSONFault) -> Bool {
        guard take(UInt8(ascii: "\"")) else { throw fault("a string is expected") }
        var hasEscapes = false
        while true {
            position = bytes.endOfPlainText(from: position)
            guard position < bytes.count else { throw fault("a string has no end") }
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return hasEscapes
            case UInt8(ascii: "\\"):
                hasEscapes = true
                // What follows is no quote that ends the string; whether it is an escape is for those who read it.
                position = min(position + 2, bytes.count)
            default:
                throw JSONFault(position: position, reason: "a control character is in a string")
            }
        }
    }

    private mutating func skipNumber() throws(JSONFault) {
        let begin = position
        _ = take(UInt8(ascii: "-"))
        let whole = position
        guard skipDigits() else {
            throw JSONFault(position: begin, reason: "a value is expected", isAtEnd: position == bytes.count)
        }
        if bytes[whole] == UInt8(ascii: "0"), position > whole + 1 {
            throw JSONFault(position: begin, reason: "a number begins with 0")
        }
        if take(UInt8(ascii: ".")), !skipDigits() { throw fault("a digit is missing") }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard skipDigits() else { throw fault("a digit is missing") }
        }
    }

    private mutating func skipDigits() -> Bool {
        let begin = position
        while position < bytes.count, UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[position] { position += 1 }
        return position > begin
    }

    private mutating func skipWord(_ word: StaticString) throws(JSONFault) {
        let begin = position
        for index in 0..<word.utf8CodeUnitCount {
            // The index is below the literal's length.
            guard take(word.utf8Start[index]) else {
                throw JSONFault(position: begin, reason: "a value is expected", isAtEnd: position == bytes.count)
            }
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private func fault(_ reason: String) -> JSONFault {
        JSONFault(position: position, reason: reason, isAtEnd: position >= bytes.count)
    }
}
