/// Checks documents against a schema, and tells each fault with its path.
///
/// Used by one thread.
final class SchemaChecker {
    /// A part of a document that the schema does not allow.
    struct Fault: Sendable, Hashable {
        /// Where, such as `$.samples[0].stack`.
        var path: String
        /// What is wrong there.
        var message: String
    }

    /// A document has no more faults listed than this.
    static let maximumFaults = 100

    private let root: JSONSchema
    private let definitions: [String: JSONSchema]
    private var expressions: [String: Regex<AnyRegexOutput>] = [:]
    private var faults: [Fault] = []

    /// - Parameter schema: A schema's document.
    init(schema: JSONValue) throws(JSONSchema.Unsupported) {
        root = try JSONSchema(schema)
        var definitions: [String: JSONSchema] = [:]
        if case .object(let fields) = schema, case .object(let named) = fields["$defs"] {
            for (name, definition) in named { definitions[name] = try JSONSchema(definition) }
        }
        self.definitions = definitions
    }

    /// What the schema does not allow in `document`, ``maximumFaults`` at most.
    func faults(in document: JSONValue) -> [Fault] {
        faults = []
        check(document, root, "$")
        return faults
    }

    private func check(_ value: JSONValue, _ schema: JSONSchema, _ path: String) {
        switch schema {
        case .reference(let name):
            guard let definition = definitions[name] else { return fault(path, "the schema has no \(name)") }
            check(value, definition, path)
        case .rules(let rules): check(value, rules, path)
        }
    }

    private func check(_ value: JSONValue, _ rules: JSONSchema.Rules, _ path: String) {
        if let type = rules.type, !value.isOfType(type) { fault(path, "\(value.excerpt) is not of type \(type)") }
        if let constant = rules.constant, value != constant {
            fault(path, "\(value.excerpt) is not \(constant.excerpt)")
        }
        switch value {
        case .object(let fields): check(fields, rules, path)
        case .array(let elements):
            guard let items = rules.items else { return }
            for (index, element) in elements.enumerated() { check(element, items, "\(path)[\(index)]") }
        case .number(let number):
            if let minimum = rules.minimum, number < minimum {
                fault(path, "\(value.excerpt) is less than \(JSONValue.number(minimum).excerpt)")
            }
            if let maximum = rules.maximum, number > maximum {
                fault(path, "\(value.excerpt) is more than \(JSONValue.number(maximum).excerpt)")
            }
        case .string(let text):
            if let length = rules.minimumLength, text.unicodeScalars.count < length {
                fault(path, "\(value.excerpt) is too short")
            }
            if let pattern = rules.pattern, !matches(text, pattern) {
                fault(path, "\(value.excerpt) does not match \(pattern.text)")
            }
        case .null, .boolean: break
        }
    }

    private func check(_ fields: [String: JSONValue], _ rules: JSONSchema.Rules, _ path: String) {
        for name in rules.required where fields[name] == nil { fault(path, "\(name) is missing") }
        var known: Set<String> = []
        for (name, schema) in rules.properties {
            known.insert(name)
            if let value = fields[name] { check(value, schema, "\(path).\(name)") }
        }
        guard let schema = rules.additionalProperties else { return }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) where !known.contains(name) {
            check(value, schema, "\(path).\(name)")
        }
    }

    private func matches(_ text: String, _ pattern: Pattern) -> Bool {
        if expressions[pattern.text] == nil { expressions[pattern.text] = try? Regex<AnyRegexOutput>(pattern.text) }
        guard let expression = expressions[pattern.text] else { return false }
        return (try? expression.firstMatch(in: text)) != nil
    }

    private func fault(_ path: String, _ message: String) {
        if faults.count < Self.maximumFaults { faults.append(Fault(path: path, message: message)) }
    }
}

extension JSONValue {
    fileprivate func isOfType(_ name: String) -> Bool {
        switch self {
        case .null: name == "null"
        case .boolean: name == "boolean"
        // 5.0 is an integer too (draft 2020-12, 6.1.1).
        case .number(let value): name == "number" || name == "integer" && value == value.rounded()
        case .string: name == "string"
        case .array: name == "array"
        case .object: name == "object"
        }
    }
}
