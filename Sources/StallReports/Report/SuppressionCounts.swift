/// The number of suppressions for each reason.
public struct SuppressionCounts: Codable, Sendable, Equatable {
    // Only counts other than 0, so that equal counts are equal values.
    private var counts: [String: Int] = [:]

    package init() {}

    package mutating func add(_ other: SuppressionCounts) {
        counts.merge(other.counts) { $0 + $1 }
    }

    /// The alphabetically first reason with a negative count, and that count; `nil` if there is none.
    package var firstNegative: (reason: String, count: Int)? {
        counts.filter { $0.value < 0 }.min { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The number of suppressions for one reason; setting 0 removes it.
    public subscript(reason: SuppressionReason) -> Int {
        get { counts[reason.rawValue] ?? 0 }
        set { counts[reason.rawValue] = newValue == 0 ? nil : newValue }
    }

    /// Decodes an object with a count for each reason.
    ///
    /// The count of a missing reason is 0. Unknown reasons are kept.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if the value is not an object of integers. A negative count is not an error here.
    public init(from decoder: any Decoder) throws {
        counts = try decoder.singleValueContainer().decode([String: Int].self).filter { $0.value != 0 }
    }

    /// Encodes an object with a count for each reason, known or kept from the input.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: An error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        let all = SuppressionReason.allCases.map { ($0.rawValue, self[$0]) }
        var container = encoder.singleValueContainer()
        try container.encode(counts.merging(all) { known, _ in known })
    }
}
