import Foundation

/// The encoder for `--json`.
enum JSONOutput {
    /// Encodes `value` as UTF-8 with sorted keys and a line feed at the end; in one line if `isIndented` is false.
    static func bytes(_ value: some Encodable, isIndented: Bool = true) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
        return [UInt8](try encoder.encode(value)) + [UInt8(ascii: "\n")]
    }
}
