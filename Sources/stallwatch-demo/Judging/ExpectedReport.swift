import StallWatch

/// The required contents of a scenario's report, apart from its duration.
///
/// A field that is `nil` is not judged, because it does not apply or is random.
struct ExpectedReport: Equatable, Sendable {
    var kind = StallReport.Kind.stall
    /// The label of the stalled loop.
    var loop = "main"
    var loopKind: StallReport.LoopKind? = .runLoop
    /// The nesting depth: runs of the loop inside its own callouts.
    var nesting = 0
    var mode: String?
    var callout: StallReport.Callout?
    /// The demangled name of the culprit.
    var function: String?
    /// The kind of the cause.
    var cause: String?
    /// The name of the thread that owns the awaited lock; `nil` if there must be none.
    var owner: String?
    /// The owner's activity: `running`, or the name of its system call.
    var ownerDoes: String?
    /// The kind of the awaited lock.
    var lock: StallReport.LockKind?
    /// A part of the blocking system call with its target, such as `connect(127.0.0.1:`.
    var call: String?
    /// The stall's CPU time, as a multiple of the threshold.
    var onCPU: Double?
    /// The number of reports.
    ///
    /// All of them must have these contents.
    var count = 1
    /// Whether the samples must show different stacks, as many small pieces of work do.
    var differingSamples = false
}

extension ExpectedReport {
    static let defaultMode = "kCFRunLoopDefaultMode"

    /// A stall of the main run loop, in its default mode.
    static func main(
        _ callout: StallReport.Callout?, in function: String?, nesting: Int = 0, cause: String? = nil,
        call: String? = nil, onCPU: Double? = nil
    ) -> Self {
        Self(
            nesting: nesting, mode: defaultMode, callout: callout, function: function, cause: cause, call: call,
            onCPU: onCPU
        )
    }

    /// A stall of the main run loop that waits for a lock, with or without an owner.
    static func main(
        _ callout: StallReport.Callout?, in function: String?, cause: String = "lock", lock: StallReport.LockKind,
        owner: String? = nil, ownerDoes: String? = nil
    ) -> Self {
        Self(
            mode: defaultMode, callout: callout, function: function, cause: cause, owner: owner, ownerDoes: ownerDoes,
            lock: lock
        )
    }

    /// A stall of a thread's own run loop.
    static func runLoop(
        _ label: String, _ callout: StallReport.Callout?, in function: String?, mode: String? = defaultMode
    ) -> Self {
        Self(loop: label, mode: mode, callout: callout, function: function)
    }

    /// A stall or a starvation of a loop with a heartbeat.
    static func heartbeat(
        _ label: String, _ loopKind: StallReport.LoopKind, in function: String?, kind: StallReport.Kind = .stall
    ) -> Self {
        Self(kind: kind, loop: label, loopKind: loopKind, function: function)
    }

    /// A stall of a loop with a probe.
    static func probe(_ label: String, in function: String?) -> Self {
        Self(loop: label, loopKind: .probe, function: function)
    }
}
