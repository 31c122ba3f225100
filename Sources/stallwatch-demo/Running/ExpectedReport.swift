import StallWatch

/// What a scenario's report must say beside its duration.
///
/// What is `nil` is not judged: it does not apply, or chance has a say in it.
struct ExpectedReport: Equatable, Sendable {
    var kind = StallReport.Kind.stall
    /// The label of the loop that stalls.
    var loop = "main"
    var loopKind: StallReport.LoopKind? = .runLoop
    /// Runs of the loop inside a callout of the same loop.
    var nesting = 0
    var mode: String?
    var callout: StallReport.Callout?
    /// The function that is to blame, as it is demangled.
    var function: String?
    /// The kind of the cause; `nil` where it is not judged.
    var cause: String?
    /// The name of the thread that holds what is waited for; `nil` when nobody does.
    var owner: String?
    /// What the thread that holds it does: `running`, or the name of the system call that it waits in.
    var ownerDoes: String?
    /// The kind of lock that is waited for.
    var lock: StallReport.LockKind?
    /// What is part of the system call that is waited in, written with what it is on: `connect(127.0.0.1:`.
    var call: String?
    /// The CPU time of the stall, as a multiple of the threshold.
    var onCPU: Double?
    /// How many reports there must be, all of which must say the same.
    var count = 1
    /// Whether the samples must show different stacks.
    ///
    /// That is how many small pieces of work are told from a long one.
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

    /// A stall of the main run loop, which waits for a lock; without an owner, for one that has none.
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

    /// A stall, or a starvation, that a heartbeat tells of.
    static func heartbeat(
        _ label: String, _ loopKind: StallReport.LoopKind, in function: String?, kind: StallReport.Kind = .stall
    ) -> Self {
        Self(kind: kind, loop: label, loopKind: loopKind, function: function)
    }

    /// A stall that a loop's probe tells of.
    static func probe(_ label: String, in function: String?) -> Self {
        Self(loop: label, loopKind: .probe, function: function)
    }
}
