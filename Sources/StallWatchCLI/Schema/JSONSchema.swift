/// The part of JSON Schema (draft 2020-12) that the reports' schema is written in.
///
/// A schema with a keyword that is not in that part is refused, so that nothing is passed over.
indirect enum JSONSchema: Sendable {
    /// `$ref` to one of `$defs`.
    case reference(String)
    case rules(Rules)

    struct Rules: Sendable {
        var type: String?
        var required: [String] = []
        /// Sorted by name.
        var properties: [(name: String, schema: JSONSchema)] = []
        /// For what is not in `properties`.
        var additionalProperties: JSONSchema?
        var items: JSONSchema?
        var constant: JSONValue?
        var minimum: Double?
        var maximum: Double?
        var minimumLength: Int?
        var pattern: Pattern?
    }

    /// Why a document is no schema that is understood.
    struct Unsupported: Error, Equatable {
        let reason: String
    }

    /// Keywords that say nothing about what is valid; `x-words` lists words that more may be added to.
    private static let annotations: Set<String> = ["$schema", "$id", "$defs", "title", "description", "x-words"]

    init(_ value: JSONValue) throws(Unsupported) {
        guard case .object(let fields) = value else { throw Unsupported(reason: "a schema is not an object") }
        // Beside a reference, the reports' schema has descriptions only.
        if case .string(let target) = fields["$ref"] {
            let others = Set(fields.keys).subtracting(Self.annotations).subtracting(["$ref"])
            guard target.hasPrefix("#/$defs/"), others.isEmpty else { throw Unsupported(reason: "$ref: \(target)") }
            self = .reference(String(target.dropFirst("#/$defs/".count)))
            return
        }
        var rules = Rules()
        for (keyword, value) in fields where !Self.annotations.contains(keyword) { try rules.take(keyword, value) }
        self = .rules(rules)
    }
}

extension JSONSchema.Rules {
    fileprivate mutating func take(_ keyword: String, _ value: JSONValue) throws(JSONSchema.Unsupported) {
        switch (keyword, value) {
        case ("type", .string(let name)): type = name
        case ("required", .array(let names)):
            for case .string(let name) in names { required.append(name) }
        case ("properties", .object(let fields)):
            for (name, schema) in fields.sorted(by: { $0.key < $1.key }) {
                properties.append((name, try JSONSchema(schema)))
            }
        case ("additionalProperties", .object): additionalProperties = try JSONSchema(value)
        case ("items", .object): items = try JSONSchema(value)
        case ("const", _): constant = value
        case ("minimum", .number(let number)): minimum = number
        case ("maximum", .number(let number)): maximum = number
        case ("minLength", .number(let number)): minimumLength = Int(number)
        case ("pattern", .string(let text)): pattern = try Pattern(text)
        default: throw JSONSchema.Unsupported(reason: keyword)
        }
    }
}

/// A regular expression of a schema, known to be one.
struct Pattern: Sendable {
    let text: String

    init(_ text: String) throws(JSONSchema.Unsupported) {
        self.text = text
        guard (try? Regex<AnyRegexOutput>(text)) != nil else {
            throw JSONSchema.Unsupported(reason: "pattern: \(text)")
        }
    }
}
