/// A table in Markdown.
package struct Table {
    package let title: String
    package let columns: [String]
    package var rows: [[String]]

    package init(title: String, columns: [String], rows: [[String]] = []) {
        self.title = title
        self.columns = columns
        self.rows = rows
    }

    package var text: String {
        let lines = [columns, ["---"] + columns.dropFirst().map { _ in "---:" }] + rows
        return "## \(title)\n\n" + lines.map { "| \($0.joined(separator: " | ")) |\n" }.joined()
    }
}

/// Measured values of one kind.
package struct Samples {
    private let sorted: [Double]

    package init(_ values: some Sequence<Double>) {
        sorted = values.sorted()
    }

    package var median: Double { percentile(50) }

    /// Returns the given percentile; 0 without values.
    package func percentile(_ percentage: Int) -> Double {
        sorted.isEmpty ? 0 : sorted[min(sorted.count * percentage / 100, sorted.count - 1)]
    }
}

extension Double {
    /// Returns the number with this many digits after the point.
    package func digits(_ count: Int) -> String {
        var scale = 1.0
        for _ in 0..<count { scale *= 10 }
        let scaled = (magnitude * scale).rounded()
        let whole = Int(scaled / scale)
        let sign = self < 0 && scaled > 0 ? "-" : ""
        guard count > 0 else { return "\(sign)\(whole)" }
        let fraction = String(Int(scaled) - whole * Int(scale))
        return "\(sign)\(whole)." + String(repeating: "0", count: count - fraction.count) + fraction
    }
}
