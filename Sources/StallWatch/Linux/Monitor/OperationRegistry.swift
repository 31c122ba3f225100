import StallReports
import Synchronization

/// The operations in progress that have a limit, for any thread, and when to search them.
///
/// Both sections of an operation are short: they use a slot of an array. A pure value of the times that it is given.
final class OperationRegistry: Sendable {
    static let maximumOperations = 10_000
    /// The slots that a search examines in one section, so that no operation waits for long: about 1 µs.
    private static let slotsPerSection = 256

    struct Operation: Sendable {
        /// Within the limit of a context's label.
        var name: String
        var context: StallContext?
        /// When it began, in monotonic nanoseconds.
        var began: UInt64
        /// In nanoseconds.
        var limit: UInt64
        /// The address of its task, which lives until the operation ends.
        var task: UInt64
        /// Its number; the first one that is watched is 1.
        var number: UInt64
        var slot = -1
        /// Whether it is overdue and gets a report, or gets none because there are too many.
        var isFound = false, isOmitted = false

        /// When it is overdue, if its time counts from `countingFrom` at the earliest.
        func due(countingFrom: UInt64) -> UInt64 {
            let (due, isLate) = max(began, countingFrom).addingReportingOverflow(limit)
            return isLate ? .max : due
        }
    }

    typealias Findings = (overdue: [Operation], omitted: Int)

    private struct Slots {
        var slots: [Operation?] = []
        var free: [Int] = []
        var number: UInt64 = 0
        var isOpen = false
        /// The number of operations that were not watched because there were too many.
        var unwatched = 0
        /// When the next search is due, in monotonic nanoseconds; `.max` if no operation is in progress.
        var nextSearch = UInt64.max
        /// The overdue operations that have ended, and when.
        var ended: [UInt64: UInt64] = [:]
    }
    private let state = Mutex(Slots())

    var unwatched: Int { state.withLock { $0.unwatched } }

    var nextSearch: UInt64 { state.withLock { $0.nextSearch } }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    func open() { state.withLock { $0.isOpen = true } }

    func close() { state.withLock { $0.isOpen = false } }

    /// Adds an operation; returns its slot, -1 if it is not watched, and whether the next search is now due earlier.
    func begin(
        _ name: String, limit: UInt64, context: StallContext?, task: UInt64, at now: UInt64
    ) -> (slot: Int, isEarlier: Bool) {
        let name = name.prefix(utf8: StallReport.Context.maximumText)
        return state.withLock { state in
            guard state.isOpen else { return (-1, false) }
            state.number &+= 1
            let new = state.slots.count < Self.maximumOperations ? state.slots.count : nil
            guard let slot = state.free.popLast() ?? new else {
                state.unwatched += 1
                return (-1, false)
            }
            if slot == new { state.slots.append(nil) }
            let operation = Operation(
                name: name, context: context, began: now, limit: limit, task: task, number: state.number, slot: slot)
            state.slots[slot] = operation
            let due = operation.due(countingFrom: 0)
            guard due < state.nextSearch else { return (slot, false) }
            state.nextSearch = due
            return (slot, true)
        }
    }

    /// Removes an operation; returns whether it was found overdue, so that its end has to be reported.
    func end(_ slot: Int, at now: () -> UInt64) -> Bool {
        guard slot >= 0 else { return false }
        return state.withLock { state in
            guard let operation = state.slots[slot].take() else { return false }
            state.free.append(slot)
            guard operation.isFound else { return false }
            state.ended[operation.number] = now()
            return true
        }
    }

    /// Returns when overdue operations with these numbers have ended; the ends of others are kept for their reports.
    func takeEnded(of numbers: [UInt64]) -> [UInt64: UInt64] {
        state.withLock { state in
            var ended: [UInt64: UInt64] = [:]
            for number in numbers { ended[number] = state.ended.removeValue(forKey: number) }
            return ended
        }
    }

    func isInProgress(_ operation: Operation) -> Bool {
        state.withLock { $0.slots[operation.slot]?.number == operation.number }
    }

    /// Returns the operations in progress.
    func read() -> OperationsReading {
        var found = OperationsReading()
        // Named after the sections, in which other operations wait.
        var first: [Operation] = []
        var (from, count) = (0, 1)
        while from < count {
            count = state.withLock { state in
                for case let operation? in state.slots.dropFirst(from).prefix(Self.slotsPerSection) {
                    found.began.append(operation.began)
                    if first.count < Self.namedOperations { first.append(operation) }
                }
                return state.slots.count
            }
            from += Self.slotsPerSection
        }
        for name in first.lazy.map({ $0.context?.label ?? $0.name }) where !found.names.contains(name) {
            if found.names.count < OperationsInFlight.maximumNames { found.names.append(name) }
        }
        return found
    }
    private static let namedOperations = 64

    /// Finds the operations that are overdue, each once, counts those beyond the limit, and plans the next search.
    func findOverdue(at now: UInt64, countingFrom: UInt64, atMost most: Int) -> Findings {
        var findings: Findings = ([], 0)
        var next = UInt64.max
        // An operation that begins meanwhile plans a search by itself.
        var count = state.withLock { state in
            state.nextSearch = .max
            return state.slots.count
        }
        var from = 0
        while from < count {
            count = state.withLock { state in
                for slot in from..<min(from + Self.slotsPerSection, state.slots.count) {
                    guard let operation = state.slots[slot], !operation.isFound, !operation.isOmitted else { continue }
                    let due = operation.due(countingFrom: countingFrom)
                    guard due <= now else {
                        next = min(next, due)
                        continue
                    }
                    if findings.overdue.count < most {
                        state.slots[slot]?.isFound = true
                        findings.overdue.append(operation)
                    } else {
                        state.slots[slot]?.isOmitted = true
                        findings.omitted += 1
                    }
                }
                return state.slots.count
            }
            from += Self.slotsPerSection
        }
        state.withLock { $0.nextSearch = min($0.nextSearch, next) }
        return findings
    }
}
