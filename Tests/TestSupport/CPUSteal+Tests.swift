package import LinuxSupport
import Synchronization
package import Testing

/// The number of excuses that a whole test run may need.
///
/// Past it, the clock excuses nothing.
private let excuseLimit = 10
private let excuses = Atomic<Int>(0)

/// Counts an excuse, and returns whether it is within the limit.
private func mayExcuse() -> Bool {
    excuses.add(1, ordering: .relaxed).newValue <= excuseLimit
}

extension CPUSteal {
    /// Turns the failures in `body` into known issues, if the host has taken too much CPU since this was read.
    ///
    /// Only for expectations that the clock decides: no program in the machine can see or prevent such a delay.
    package func excuses(_ body: () -> Void) {
        withKnownIssue("the host gave this machine's CPUs to others", isIntermittent: true) {
            body()
        } matching: { _ in
            isDisturbing && mayExcuse()
        }
    }
}

/// The number of times that ``remeasured(watchHost:record:isolation:_:until:)`` measures at most.
package let maximumMeasurements = 5

/// Repeats a measurement while the host of the virtual machine takes its CPUs away (see ``CPUSteal``).
///
/// Only `isOnTime` can cause a repetition. An expectation inside `measure` is judged in every attempt.
///
/// - Parameters:
///   - watchHost: Starts to watch the host. The result says whether it has since taken too much.
///   - record: Records a repetition; by default as a known issue, which Swift Testing counts and prints at the end.
///   - isolation: The caller's.
///   - measure: Measures once.
///   - isOnTime: Whether the measurement is the expected one. The clock decides that, and nothing else may.
/// - Returns: The first measurement that is on time or undisturbed, or else the last one. The test judges it.
/// - Throws: The error of `measure`.
package func remeasured<Value>(
    watchHost: () -> () -> Bool = {
        let steal = CPUSteal()
        return { steal.isDisturbing && mayExcuse() }
    },
    record: (Comment) -> Void = { comment in withKnownIssue { Issue.record(comment) } },
    isolation: isolated (any Actor)? = #isolation, _ measure: () async throws -> Value,
    until isOnTime: (Value) -> Bool
) async throws -> Value {
    for attempt in 1..<maximumMeasurements {
        let isDisturbed = watchHost()
        let value = try await measure()
        guard !isOnTime(value), isDisturbed() else { return value }
        record("attempt \(attempt) gave \(value) while the host took the CPUs: measured again")
    }
    return try await measure()
}
