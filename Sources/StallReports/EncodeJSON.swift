internal import Foundation

/// Returns a value as JSON: UTF-8 with sorted keys and a line feed at the end; one line unless it is indented.
///
/// Infinities and NaN become the strings `inf`, `-inf` and `nan`.
///
/// - Parameters:
///   - value: A value of strings, numbers and Booleans, whose encoding cannot fail.
///   - isIndented: Whether each field has a line.
/// - Returns: The bytes; empty if the value's own encoding fails.
func encodeJSON(_ value: some Encodable, isIndented: Bool) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
        positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan"
    )
    guard let data = try? encoder.encode(value) else { return [] }
    return [UInt8](data) + [UInt8(ascii: "\n")]
}
