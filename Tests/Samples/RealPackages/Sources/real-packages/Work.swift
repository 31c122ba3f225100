import Dispatch
import Synchronization

/// How long each stall takes: three times the threshold, so that all samples but the last are within it.
let stallLength = DispatchTimeInterval.milliseconds(320)
let stallMicroseconds: UInt32 = 320_000

private let finished = Atomic<Int>(0)

/// Work after a blocking call: without it, a release build makes a jump of the call, and the caller's frame is gone.
@inline(__always)
func finish() {
    finished.add(1, ordering: .relaxed)
}

/// Keeps `value` from being optimized away.
@inline(never)
@_optimize(none)
func use<Value>(_ value: Value) {}
