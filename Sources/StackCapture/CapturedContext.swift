/// What a thread was working on when its stack was captured, as the bytes that were in its memory.
package struct CapturedContext: Sendable, Hashable {
    /// The Swift task that ran on the thread.
    package struct SwiftTask: Sendable, Hashable {
        /// The task's id, as in the description of its job.
        package var id: UInt64
        /// The task's name in UTF-8; `nil` if it has none.
        package var name: [UInt8]?
        /// Whether the name is longer than the part that was read.
        package var isNameCut: Bool

        package init(id: UInt64, name: [UInt8]? = nil, isNameCut: Bool = false) {
            self.id = id
            self.name = name
            self.isNameCut = isNameCut
        }
    }

    /// The task; `nil` if none ran, or the runtime's layout is not known.
    package var task: SwiftTask?
    /// The context that the app has published; empty if there is none.
    package var payload: [UInt8]
    /// OpenTelemetry's thread context record; empty if there is no valid one.
    package var record: [UInt8]

    package init(task: SwiftTask? = nil, payload: [UInt8] = [], record: [UInt8] = []) {
        self.task = task
        self.payload = payload
        self.record = record
    }

    /// Whether nothing was found.
    var isEmpty: Bool { task == nil && payload.isEmpty && record.isEmpty }
}
