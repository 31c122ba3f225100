/// What the calibration must know of the code that publishes contexts.
package struct ContextPublisher: Sendable {
    /// The key of the task-local value: the address of its declaration's object.
    package var key: UInt64
    /// The address of the object that is the value of ``bind``.
    package var value: UInt64
    /// The distance from that object to its payload.
    package var payloadOffset: UInt64
    /// The payload that ``bind`` and ``enter`` publish.
    package var payload: [UInt8]
    /// Calls a function with the known context as the task-local value.
    package var bind: @Sendable (() -> Void) -> Void
    /// Calls an async function with the known context as the task-local value.
    package var bindAsync: @Sendable (@Sendable () async -> Void) async -> Void
    /// Calls a function in a synchronous scope of the known context.
    package var enter: @Sendable (() -> Void) -> Void
    /// Returns the address of the calling thread's variable for the innermost scope.
    package var scope: @Sendable () -> UnsafeRawPointer

    package init(
        key: UInt64, value: UInt64, payloadOffset: UInt64, payload: [UInt8],
        bind: @escaping @Sendable (() -> Void) -> Void,
        bindAsync: @escaping @Sendable (@Sendable () async -> Void) async -> Void,
        enter: @escaping @Sendable (() -> Void) -> Void,
        scope: @escaping @Sendable () -> UnsafeRawPointer
    ) {
        self.key = key
        self.value = value
        self.payloadOffset = payloadOffset
        self.payload = payload
        self.bind = bind
        self.bindAsync = bindAsync
        self.enter = enter
        self.scope = scope
    }
}
