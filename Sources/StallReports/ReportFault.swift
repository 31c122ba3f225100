internal import Foundation

/// A part of a document that makes it an invalid report.
package struct ReportFault: Sendable, Hashable, CustomStringConvertible {
    /// The largest count: the largest whole number that every reader of JSON keeps, 2^53 - 1 (RFC 8259, section 6).
    package static let maximumCount = (1 << 53) - 1

    /// The place, such as `$.samples[0].stack`; `$` is the whole document.
    package var path: String
    package var message: String
    /// The place and the reason for which readers refuse the report; `nil` if they accept it.
    var refusal: String?

    package init(path: String, message: String, refusal: String? = nil) {
        self.path = path
        self.message = message
        self.refusal = refusal
    }

    init(refusal: String) {
        self.init(path: "$", message: "this is not a stall report: \(refusal)", refusal: refusal)
    }

    /// The place and the message of the error that a decoder throws for `json`.
    package init(_ error: DecodingError, in json: [UInt8]) {
        switch error {
        case .keyNotFound(let key, let context):
            self.init(path: Self.path(context), message: "\(key.stringValue) is missing")
        case .valueNotFound(_, let context):
            self.init(path: Self.path(context), message: "null is not allowed here")
        case .typeMismatch(_, let context):
            self.init(path: Self.path(context), message: context.debugDescription)
        case .dataCorrupted(let context):
            let syntax =
                context.codingPath.isEmpty ? JSONBounds(json).incompleteness ?? Self.syntaxFault(in: json) : nil
            self.init(path: Self.path(context), message: syntax.map { "not JSON: \($0)" } ?? context.debugDescription)
        @unknown default:
            self.init(path: "$", message: "\(error)")
        }
        if message.hasSuffix(".") { message.removeLast() }
    }

    package var description: String { "\(path): \(message)" }

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
