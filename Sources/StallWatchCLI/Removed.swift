/// Commands and options that earlier versions had.
enum Removed {
    /// The words of a command line, and what to use in their place.
    static let table: [(words: String, instead: String)] = [
        ("ship", "let a log agent read the NDJSON sink, as docs/guides/Fleet.md shows"),
        ("profile", "use swift-profile-recorder or perf"),
        ("validate", "check reports against Schemas/stall-report.schema.json with a JSON Schema validator"),
        ("export --format perfetto", "use --format firefox, which shows each loop's turns, too"),
        ("export --format otlp-profiles", "use --format pprof"),
        ("export --format speedscope", "use --format collapsed or pprof, which speedscope opens"),
        ("export --format perf", "use --format firefox or collapsed"),
    ]

    /// Returns the refusal of a command line with removed words; `nil` if it has none.
    static func failure(_ arguments: [String]) -> CommandFailure? {
        let given = arguments.drop { $0 == "help" }.flatMap { argument in
            argument.hasPrefix("--") ? argument.split(separator: "=", maxSplits: 1) : [Substring(argument)]
        }
        for (text, instead) in table {
            let words = text.split(separator: " ")
            guard given.first == words.first, given.dropFirst().contains(words.dropFirst()) else { continue }
            return CommandFailure(.removed, "'stallwatch \(text)' was removed: \(instead).")
        }
        return nil
    }
}
