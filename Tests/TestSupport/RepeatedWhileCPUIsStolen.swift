import LinuxSupport
import Synchronization
package import Testing

extension Trait where Self == RepeatedWhileCPUIsStolen {
    /// What fails while the machine's host gives its CPUs to others is done again, up to ``RepeatedWhileCPUIsStolen/attempts``
    /// times in all.
    package static var repeatedWhileCPUIsStolen: Self { Self() }
}

/// For tests that judge by the clock: they need the CPUs that the machine says it has (see ``CPUSteal``).
///
/// Nothing is silent: each failure that is not the last word is recorded as a known issue. The last attempt is judged
/// whatever the host does, and so is each failure in a time in which it took nothing.
package struct RepeatedWhileCPUIsStolen: SuiteTrait, TestTrait, TestScoping {
    package static let attempts = 5

    package let isRecursive = true
    private let isStolen: @Sendable () -> @Sendable () -> Bool

    /// - Parameter isStolen: Begins to watch the host, and gives what tells whether it has taken too much since.
    package init(
        isStolen: @escaping @Sendable () -> @Sendable () -> Bool = {
            let stolen = CPUSteal()
            return { stolen.isDisturbing }
        }
    ) {
        self.isStolen = isStolen
    }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        for attempt in 1..<Self.attempts {
            let isStolen = isStolen()
            let isExcused = Flag()
            try await withKnownIssue(
                "the host gave this machine's CPUs to others in attempt \(attempt) of \(Self.attempts): it is repeated",
                isIntermittent: true
            ) {
                try await function()
            } matching: { _ in
                guard isStolen() else { return false }
                isExcused.set()
                return true
            }
            if !isExcused.isSet { return }
        }
        try await function()
    }

    /// Set by whichever thread records the issue.
    private final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }
}
