internal import StallReports

/// What a thread is working on, for reports of its stalls: a request, a job, a screen.
///
/// ```swift
/// try await StallContext.$current.withValue(StallContext("GET /feed", ["user": "free"])) {
///     try await respond()  // a stall in here, on whatever thread it runs, has the context in its report
/// }
/// ```
///
/// ``current`` is a task-local value: child tasks and `Task { }` inherit it. For code that does not suspend, such as a
/// callback of a run loop or a frame of a game, use ``withStallContext(_:_:body:)``.
///
/// A report has a context only if the app has set one. It contains what the app has put into it, within fixed limits,
/// and the configuration's `redact` may change or remove it. The watchdog copies it from the memory of the stalled
/// thread; the thread itself does nothing for it.
///
/// Creating a context costs one allocation and a copy of its text; binding it costs what a task-local value costs.
///
/// `@unchecked Sendable`: its memory is written before it is shared, and never again.
public struct StallContext: @unchecked Sendable {
    /// The context of the running task, or of the running thread outside of tasks; `nil` if there is none.
    @TaskLocal public static var current: StallContext?

    let storage: ContextStorage

    /// Creates a context.
    ///
    /// - Parameters:
    ///   - label: What is being worked on, such as `GET /feed`: at most 128 bytes of UTF-8. Use few different labels, as
    ///     for a metric: reports are grouped by them.
    ///   - attributes: More about it: at most 8, with keys of at most 32 and values of at most 64 bytes.
    ///   - traceID: The id of the trace, as 32 hexadecimal digits (W3C Trace Context). Any other text is ignored.
    ///   - spanID: The id of the span, as 16 hexadecimal digits. Any other text is ignored.
    ///
    /// Longer texts are cut between two characters, and of more attributes those with the first keys are kept. The report
    /// says so.
    public init(
        _ label: String, _ attributes: [String: String] = [:], traceID: String? = nil, spanID: String? = nil
    ) {
        self.init(ContextPayload(label: label, attributes: attributes, traceID: traceID, spanID: spanID))
    }

    init(_ payload: ContextPayload) {
        storage = ContextStorage.make(payload)
    }

    /// The label, within its limit.
    public var label: String { storage.payload.label }

    /// The attributes, within their limits.
    public var attributes: [String: String] {
        Dictionary(storage.payload.attributes.map { ($0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// The id of the trace, as 32 lowercase hexadecimal digits; `nil` if there is none.
    public var traceID: String? { storage.payload.traceID.map { hexadecimal($0) } }

    /// The id of the span, as 16 lowercase hexadecimal digits; `nil` if there is none.
    public var spanID: String? { storage.payload.spanID.map { hexadecimal($0) } }
}

/// Calls a function that does not suspend, with a context for the reports of its stalls.
///
/// ```swift
/// withStallContext("import") {
///     importEverything()
/// }
/// ```
///
/// For event loops, run loops, games, and threads without Swift concurrency. It is also the value of
/// ``StallContext/current`` meanwhile, so that a `Task { }` of `body` inherits it. Scopes may be nested; the innermost
/// one counts.
///
/// The report has the context on every system, also where a task's values cannot be read.
///
/// - Parameters:
///   - context: The context; create it once if the scope is entered often.
///   - body: The function.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withStallContext<Result>(_ context: StallContext, body: () throws -> Result) rethrows -> Result {
    try StallContext.$current.withValue(context) {
        #if os(Linux) && !STALLWATCH_INERT
            try context.withScope(body)
        #else
            try body()
        #endif
    }
}

/// Calls a function that does not suspend, with a new context for the reports of its stalls.
///
/// - Parameters:
///   - label: What is being worked on: see ``StallContext/init(_:_:traceID:spanID:)``.
///   - attributes: More about it.
///   - body: The function.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withStallContext<Result>(
    _ label: String, _ attributes: [String: String] = [:], body: () throws -> Result
) rethrows -> Result {
    try withStallContext(StallContext(label, attributes), body: body)
}

/// The memory of a context: the block of ``ContextPayload`` behind an object's header.
final class ContextStorage: ManagedBuffer<Int, UInt8> {
    /// Creates the memory of a payload; its header is the number of bytes in use.
    static func make(_ payload: ContextPayload) -> ContextStorage {
        let bytes = payload.bytes
        let buffer = Self.create(minimumCapacity: ContextPayload.byteCount) { _ in bytes.count }
        // A payload never exceeds the capacity. The rest of the block is not read.
        buffer.withUnsafeMutablePointerToElements { block in
            for (index, byte) in bytes.enumerated() { (block + index).initialize(to: byte) }
        }
        // `create` makes an object of the class that it is called on.
        return unsafeDowncast(buffer, to: ContextStorage.self)
    }

    var address: UInt64 {
        withUnsafeMutablePointerToElements { UInt64(UInt(bitPattern: $0)) }
    }

    var payload: ContextPayload {
        let bytes = withUnsafeMutablePointers { Array(UnsafeBufferPointer(start: $1, count: $0.pointee)) }
        return ContextPayload(copied: bytes) ?? ContextPayload(label: "")
    }
}
