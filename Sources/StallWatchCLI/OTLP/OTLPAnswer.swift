/// A collector's answer to a request.
struct OTLPAnswer: Sendable, Equatable {
    /// The HTTP status; 0 if there was no answer.
    var status: Int
    /// The header fields as they came; empty if missing.
    var retryAfter = ""
    var date = ""
    var contentType = ""
    /// The first bytes of the body.
    var body: [UInt8] = []
    /// Why there was no answer.
    var error = ""

    /// What a successful answer says about records that the collector did not take.
    struct PartialSuccess: Equatable {
        var rejected = 0
        var message = ""
    }

    /// The answer's `partial_success`, which is empty if all records were taken.
    ///
    /// `nil` if the body is not an answer of OTLP.
    var partialSuccess: PartialSuccess? {
        if body.isEmpty { return PartialSuccess() }
        guard contentType.hasPrefix("application/x-protobuf") else {
            // Collectors that forward JSON answer `{}` or `{"partialSuccess":{}}`.
            return contentType.hasPrefix("application/json") ? PartialSuccess() : nil
        }
        guard let answer = ProtobufReader.fields(body) else { return nil }
        var found = PartialSuccess()
        for case (1, .data(let bytes)) in answer {
            guard let fields = ProtobufReader.fields(bytes) else { return nil }
            for field in fields {
                switch field {
                case (1, .number(let count)): found.rejected = Int(clamping: count)
                case (2, .data(let text)): found.message = String(decoding: text, as: UTF8.self)
                default: break
                }
            }
        }
        return found
    }

    /// The message of an unsuccessful answer: of `google.rpc.Status`, else the beginning of the body's text.
    var message: String {
        guard status != 0 else { return error }
        if contentType.hasPrefix("application/x-protobuf"), let fields = ProtobufReader.fields(body) {
            for case (2, .data(let text)) in fields { return String(decoding: text, as: UTF8.self) }
        }
        let text = String(decoding: body.prefix(200), as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
