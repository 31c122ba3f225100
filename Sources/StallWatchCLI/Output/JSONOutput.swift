import Foundation

/// The encoder for `--json`.
enum JSONOutput {
    /// UTF-8, keys sorted, a line feed at the end.
    ///
    /// - Parameter isIndented: Else it is one line.
    static func bytes(_ value: some Encodable, isIndented: Bool = true) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
        return [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")]
    }
}
