/// The number and depth of the values in a JSON text, counted before it is decoded.
///
/// A decoder needs some hundred bytes of memory for each value, and a value may be two bytes of text. Counts only: the
/// decoder refuses text that is not JSON.
struct JSONBounds {
    /// The limit on the number of values and object members in a report.
    ///
    /// A report with twenty different stacks of 512 frames each has about 125,000.
    static let maximumValues = 500_000
    /// The limit on the nesting of objects and arrays; a report has seven levels.
    static let maximumDepth = 64

    /// An upper bound of the number of values: counts each opening bracket and each comma.
    private(set) var values = 0
    /// The deepest nesting.
    private(set) var depth = 0

    /// Counts the values and levels of `text`, outside its strings.
    ///
    /// - Parameter text: A text in UTF-8.
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

    /// A description of the exceeded limit; `nil` if none is exceeded.
    var excess: String? {
        if values > Self.maximumValues { return "it has \(values) values, but the limit is \(Self.maximumValues)" }
        if depth > Self.maximumDepth { return "it is \(depth) levels deep, but the limit is \(Self.maximumDepth)" }
        return nil
    }
}
