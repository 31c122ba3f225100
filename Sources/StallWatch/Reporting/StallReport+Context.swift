import LinuxSupport
import StackCapture
import StallReports

extension StallReport {
    /// Adds what the stalled thread was working on for most of the stall.
    ///
    /// For a pool it is the context of the first worker that has one, in the order of the report.
    ///
    /// - Parameters:
    ///   - record: The record that the report was made of.
    ///   - reason: Why contexts are not known in this process; `nil` if they are.
    mutating func addContext(of record: StallRecord, missing reason: String?) {
        let weights = record.samples.weights(duration: record.duration)
        var times: [CapturedContext?: UInt64] = [:]
        var dominant: (stack: CapturedStack, time: UInt64)?
        for (sample, weight) in zip(record.samples, weights) where sample.isValid {
            guard let stack = try? sample.stack.get() else { continue }
            // A sample without weight still counts before none.
            let time = (times[stack.context] ?? 0) + weight
            times[stack.context] = time
            if dominant.map({ time > $0.time }) ?? true { dominant = (stack, time) }
        }
        var isWhole = true
        if let captured = dominant?.stack.context {
            (context, isWhole) = Context.reading(captured)
        } else {
            context = samples.lazy.compactMap(\.workers).joined().lazy.flatMap(\.threads).compactMap(\.context).first
        }
        if !isWhole {
            missingContextReason = "the app's context was damaged in memory"
        } else if context?.taskID == nil {
            missingContextReason = dominant?.stack.missingContextReason ?? reason
        }
    }
}

extension StallReport.Context {
    /// Decodes a captured context.
    ///
    /// - Parameter captured: The bytes from the thread's memory.
    /// - Returns: The context, `nil` if nothing is left, and whether the app's own part was whole.
    static func reading(_ captured: CapturedContext) -> (context: Self?, isWhole: Bool) {
        let payload = captured.payload.isEmpty ? nil : ContextPayload(copied: captured.payload)
        let record = captured.record.isEmpty ? nil : ThreadContextRecord(captured.record)
        var context = Self(
            taskID: captured.task?.id, taskName: captured.task?.name.map { String(decoding: $0, as: UTF8.self) },
            label: payload?.label, traceID: payload?.traceID.map { hexadecimal($0) },
            spanID: payload?.spanID.map { hexadecimal($0) }
        )
        // Both ids come from the same place.
        if context.traceID == nil, let trace = record?.traceID {
            (context.traceID, context.spanID) = (trace, record?.spanID)
        }
        if let payload {
            let pairs = payload.attributes.map { ($0.key, $0.value) }
            if !pairs.isEmpty { context.attributes = Dictionary(pairs, uniquingKeysWith: { first, _ in first }) }
            if payload.omittedAttributes > 0 { context.omittedAttributes = payload.omittedAttributes }
        }
        if payload?.isCut == true || captured.task?.isNameCut == true { context.isCut = true }
        return (context == Self() ? nil : context, captured.payload.isEmpty || payload != nil)
    }
}

extension StallReport.ThreadDescription {
    /// Describes a captured thread, with what it was working on.
    init(_ thread: ThreadIdentity, _ captured: CapturedStack?) {
        self.init(thread)
        context = captured?.context.flatMap { StallReport.Context.reading($0).context }
    }
}
