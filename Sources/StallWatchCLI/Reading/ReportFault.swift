import Foundation

/// A part of a document that makes it an invalid report.
struct ReportFault: Sendable, Hashable, CustomStringConvertible {
    /// The place, such as `$.samples[0].stack`; `$` is the whole document.
    var path: String
    var message: String

    init(path: String, message: String) {
        self.path = path
        self.message = message
    }

    /// The place and the message of the error that a decoder throws for `json`.
    init(_ error: DecodingError, in json: [UInt8]) {
        switch error {
        case .keyNotFound(let key, let context):
            self.init(path: Self.path(context), message: "\(key.stringValue) is missing")
        case .valueNotFound(_, let context):
            self.init(path: Self.path(context), message: "null is not allowed here")
        case .typeMismatch(_, let context):
            self.init(path: Self.path(context), message: context.debugDescription)
        case .dataCorrupted(let context):
            let syntax = context.codingPath.isEmpty ? Self.syntaxFault(in: json) : nil
            self.init(path: Self.path(context), message: syntax.map { "not JSON: \($0)" } ?? context.debugDescription)
        @unknown default:
            self.init(path: "$", message: "\(error)")
        }
        if message.hasSuffix(".") { message.removeLast() }
    }

    var description: String { "\(path): \(message)" }

    /// The place where a document stops being JSON: only JSONSerialization names it.
    private static func syntaxFault(in json: [UInt8]) -> String? {
        do {
            _ = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed)
            return nil
        } catch {
            return (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        "$" + context.codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
    }
}
