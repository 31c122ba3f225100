internal import CLinux
import LinuxSupport
internal import StackCapture
internal import StallReports

extension StallContext {
    func withScope<Result>(_ body: () throws -> Result) rethrows -> Result {
        let address = storage.address
        return try withUnsafeTemporaryAllocation(of: clinux_scope.self, capacity: 1) { scope in
            // The buffer has a base address, because its capacity is not 0.
            guard let scope = scope.baseAddress else { return try body() }
            clinux_enter_scope(scope, address, address, nil)
            defer { clinux_leave_scope(scope) }
            return try body()
        }
    }

    /// Begins a scope of the calling thread, which owns this context until ``popScope()``.
    func pushScope() {
        let scope = UnsafeMutablePointer<clinux_scope>.allocate(capacity: 1)
        scope.initialize(to: clinux_scope())
        clinux_enter_scope(
            scope, storage.address, StallContext.current?.storage.address ?? 0,
            Unmanaged.passRetained(storage).toOpaque()
        )
    }

    /// Ends the calling thread's innermost scope, if ``pushScope()`` has begun it.
    static func popScope() {
        guard let scope = clinux_innermost_scope(), let owner = scope.pointee.owner else { return }
        clinux_leave_scope(scope)
        scope.deallocate()
        Unmanaged<ContextStorage>.fromOpaque(owner).release()
    }
}

extension StallContext {
    /// Creates a context from texts of C, which may be long and not UTF-8.
    init(label: UnsafePointer<CChar>?, traceID: UnsafePointer<CChar>?, spanID: UnsafePointer<CChar>?) {
        let (text, isCut) = Self.text(label, limit: ContextPayload.maximumLabel)
        self.init(
            ContextPayload(
                label: text, traceID: Self.identifier(traceID, digits: 32), spanID: Self.identifier(spanID, digits: 16),
                isCut: isCut)
        )
    }

    /// Returns the part of a text that is UTF-8 and not longer than a limit in bytes, and whether more follows.
    private static func text(_ text: UnsafePointer<CChar>?, limit: Int) -> (String, isCut: Bool) {
        guard let text else { return ("", false) }
        // A character has at most four bytes: one that the limit cuts is complete in what is read.
        var bytes: [UInt8] = []
        while bytes.count < limit + 4, text[bytes.count] != 0 { bytes.append(UInt8(bitPattern: text[bytes.count])) }
        var decoder = UTF8()
        var source = bytes.makeIterator()
        var valid = String.UnicodeScalarView()
        while case .scalarValue(let scalar) = decoder.decode(&source) { valid.append(scalar) }
        let kept = String(valid).prefix(utf8: limit)
        return (kept, kept.utf8.count < bytes.count)
    }

    /// Returns a text with exactly that many bytes; `nil` for any other.
    private static func identifier(_ text: UnsafePointer<CChar>?, digits: Int) -> String? {
        guard let text else { return nil }
        for index in 0..<digits where text[index] == 0 { return nil }
        return text[digits] == 0 ? String(cString: text) : nil
    }

    /// The calibration of this process, in about a millisecond when it is first asked for; captures then have contexts.
    static let calibration: ContextCalibration = {
        let calibration = ContextCalibration(publisher)
        CUnwindEngine.publish(calibration.layout)
        return calibration
    }()

    static var publisher: ContextPublisher {
        let context = StallContext("calibration")
        let object = UInt64(UInt(bitPattern: Unmanaged.passUnretained(context.storage).toOpaque()))
        // The functions keep the context, so the address stays its own.
        return ContextPublisher(
            key: UInt64(UInt(bitPattern: ObjectIdentifier(StallContext.$current))),
            value: object,
            payloadOffset: context.storage.address - object,
            payload: context.storage.payload.bytes,
            bind: { body in StallContext.$current.withValue(context, operation: body) },
            bindAsync: { body in await StallContext.$current.withValue(context, operation: body) },
            enter: { body in withStallContext(context, body: body) },
            scope: { clinux_scope_variable() }
        )
    }
}
