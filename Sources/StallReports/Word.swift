/// A word of a report's vocabulary, to which later versions may add words.
///
/// A struct around its text, not an enum: a reader keeps a word that a later version has added, where an enum would
/// refuse the whole report. `Subject` keeps the vocabularies apart: it is what the words describe.
public struct Word<Subject>: RawRepresentable, Codable, Sendable, Hashable {
    /// The word in the JSON.
    public let rawValue: String

    /// Accepts any word, known or unknown.
    public init(rawValue: String) { self.rawValue = rawValue }
}
