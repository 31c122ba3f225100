/// Where the parts of a context are, in bytes from a thread's thread pointer; `nil` for parts that are not known.
package struct ContextLayout: Sendable, Equatable {
    /// The place of OpenTelemetry's thread-local variable.
    package struct Record: Sendable, Equatable {
        /// The module id of its image, from 1, by which each thread has a block.
        var module: UInt64
        /// The distance from the beginning of the block.
        var offset: UInt64
    }

    /// The list of robust futexes, by which the kernel tells the thread pointer.
    package var robustList: Int64?
    /// The address of the current task.
    package var task: Int64?
    /// Whether the tasks' names have the expected layout.
    package var hasTaskNames = false
    /// The address of the task-local values that are bound outside of tasks.
    package var plainLocals: Int64?
    /// The address of the innermost synchronous scope.
    package var scope: Int64?
    /// OpenTelemetry's thread-local variable.
    package var record: Record?
    /// The key of the task-local value that is the context.
    package var key: UInt64 = 0
    /// The distance from the value's object to the payload.
    package var payloadOffset: UInt64 = 0
}
