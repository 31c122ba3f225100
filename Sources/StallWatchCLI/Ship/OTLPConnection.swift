import CCurl
import Glibc
import StallReports

/// A connection to a collector, which stays open between requests.
///
/// Uses the system's libcurl, loaded on first use: it has TLS, proxies and the system's authorities, costs no build time, and
/// the other subcommands work without it. Foundation's URLSession is libcurl too, but links it into the tool.
final class OTLPConnection {
    private let session: OpaquePointer
    private let settings: OTLPSettings

    /// - Throws: A ``CommandFailure`` when the system has no libcurl, or a file of the settings cannot be read.
    init(_ settings: OTLPSettings) throws(CommandFailure) {
        for path in [settings.authorities, settings.certificate, settings.key].compactMap(\.self)
        where access(path, R_OK) != 0 {
            throw CommandFailure(reading: path, errno: errno)
        }
        guard let session = ccurl_open() else {
            throw CommandFailure(
                .systemError,
                "libcurl cannot be loaded, and ship needs it: install libcurl4 (Debian, Ubuntu) or libcurl (Fedora).")
        }
        self.session = session
        self.settings = settings
    }

    deinit { ccurl_close(session) }

    /// Posts a message in the Protocol Buffers wire format and waits for the answer, at most for the settings' time.
    func post(_ message: [UInt8], timeoutMilliseconds: Int = .max) -> OTLPAnswer {
        var headers = [
            // curl would wait for a 100 after it has sent the head of a large request.
            "Expect:", "Content-Type: application/x-protobuf", "User-Agent: stallwatch/\(StallWatchVersion.current)",
        ]
        var body = message
        if settings.isCompressed, let compressed = GzipFile.compressed(message) {
            body = compressed
            headers.append("Content-Encoding: gzip")
        }
        headers += settings.headers
        let timeout = max(min(timeoutMilliseconds, settings.timeoutMilliseconds), 1)
        let copies = headers.map { strdup($0) }
        let paths = [settings.url, settings.authorities, settings.certificate, settings.key].map { text in
            text.flatMap { strdup($0) }
        }
        defer { for copy in copies + paths { free(copy) } }
        var answer = ccurl_answer()
        // strdup(3) fails only without memory.
        guard let url = paths[0], !copies.contains(nil) else { return OTLPAnswer(status: 0, error: "no memory") }
        let pointers = copies.compactMap { $0.map { UnsafePointer($0) } }
        pointers.withUnsafeBufferPointer { headers in
            body.withUnsafeBytes { body in
                var request = ccurl_request(
                    url: url, body: body.baseAddress, body_length: body.count, headers: headers.baseAddress,
                    header_count: headers.count, authorities: paths[1], certificate: paths[2], key: paths[3],
                    timeout_milliseconds: Int64(timeout)
                )
                ccurl_post(session, &request, &answer)
            }
        }
        return OTLPAnswer(answer)
    }
}

extension OTLPAnswer {
    fileprivate init(_ answer: ccurl_answer) {
        self.init(
            status: Int(answer.status), retryAfter: Self.text(answer.retry_after), date: Self.text(answer.date),
            contentType: Self.text(answer.content_type),
            body: withUnsafeBytes(of: answer.body) { Array($0.prefix(answer.body_length)) },
            error: Self.text(answer.error)
        )
    }

    /// The text of a C array up to its zero byte.
    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

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

    /// The answer's `partial_success`, empty if all records were taken; `nil` if the body is not an answer of OTLP.
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
