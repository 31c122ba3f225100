/// What a JSON text is made of, counted before anything is made of it.
///
/// A decoder takes some hundred bytes of memory for a value, and a value may be two bytes of text. Nothing is checked
/// here but the counts: a text that is no JSON is for the decoder to refuse.
struct JSONBounds {
    /// Values and members of objects that a report may have.
    ///
    /// Twenty different stacks of 512 frames each have about 125,000.
    static let maximumValues = 500_000
    /// Objects and arrays that may be inside one another; a report has seven.
    static let maximumDepth = 64

    /// At least as many as there are: whatever is opened or follows a comma counts.
    private(set) var values = 0
    /// The deepest nesting.
    private(set) var depth = 0

    /// - Parameter text: UTF-8. Bytes inside strings do not count.
    init(_ text: [UInt8]) {
        var nesting = 0
        var isInString = false
        var isEscaped = false
        for byte in text {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: ","): values += 1
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                values += 1
                nesting += 1
                depth = max(depth, nesting)
            case UInt8(ascii: "]"), UInt8(ascii: "}"): nesting -= 1
            default: break
            }
        }
    }

    /// Which bound is passed, in words; `nil` when none is.
    var excess: String? {
        if values > Self.maximumValues { return "it has \(values) values, and \(Self.maximumValues) is the most" }
        if depth > Self.maximumDepth { return "it is \(depth) levels deep, and \(Self.maximumDepth) is the most" }
        return nil
    }
}
