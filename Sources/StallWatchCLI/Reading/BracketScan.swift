/// Finds the end of a JSON document by counting its brackets.
struct BracketScan {
    enum State { case open, closed, broken }

    private(set) var state = State.open
    private var depth = 0
    private var isInString = false
    private var isEscaped = false

    /// Takes the next byte of a document; the first one has to be its opening bracket.
    @discardableResult
    mutating func take(_ byte: UInt8) -> State {
        if isInString {
            if byte < 0x20 {
                // A string has no control characters (RFC 8259, section 7), so its end is missing.
                state = .broken
            } else if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInString = false
            }
            return state
        }
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            depth -= 1
            if depth == 0 { state = .closed }
        case UInt8(ascii: "\""): isInString = true
        default: break
        }
        if depth <= 0, state == .open { state = .broken }
        return state
    }
}
