import LinuxSupport
import StallReports
import StallSymbols

/// Names each report on a thread that is left when it does not return: a file system may never answer.
///
/// A thread that is left ends on its own. Until then, the image whose file it reads has no names.
struct NamingThread {
    /// The longest time in which a thread may use no CPU, in nanoseconds: it waits for a file, or for a lock of the app.
    static let patience: UInt64 = 2_000_000_000
    /// The most threads that are left at one time; then no report gets names until one of them ends.
    static let maximumLeft = 4
    /// The time between two looks at the thread, in nanoseconds.
    private static let interval: UInt64 = 20_000_000

    private let patience: UInt64
    private let makeBuilder: @Sendable () -> ReportBuilder
    private var names: Names?
    private var left: [(call: LateCall<StallReport>, image: ImageIdentity?)] = []

    init(patience: UInt64 = NamingThread.patience, _ makeBuilder: @escaping @Sendable () -> ReportBuilder) {
        (self.patience, self.makeBuilder) = (patience, makeBuilder)
    }

    /// Returns the report with names; `nil` if there is no time left, or no thread that could find them.
    ///
    /// `whenLate` receives it half done, on another thread, if that takes longer than the configuration's time limit.
    mutating func report(
        of draft: ReportDraft, unless isOver: () -> Bool, whenLate: @escaping @Sendable (StallReport) -> Void
    ) -> StallReport? {
        while !isOver(), let names = current(), let call = names.call(draft, makeBuilder, whenLate: whenLate) {
            // Counted, because the process may be stopped for as long.
            var idleLooks: UInt64 = 0
            var used = call.cpuTime
            while !call.wait(until: monotonicNow() &+ Self.interval) {
                idleLooks = call.cpuTime == used ? idleLooks + 1 : 0
                used = call.cpuTime
                if isOver() || idleLooks >= patience / Self.interval { break }
            }
            if let report = call.value() { return report }
            left.append((call, names.access.last))
            self.names = nil
        }
        return nil
    }

    /// Releases the memory of what can be read again.
    func releaseMemory() { names?.builder?.symbolication.symbolicator.releaseMemory() }

    /// Returns names without the images in which threads are stuck; `nil` if too many are.
    private mutating func current() -> Names? {
        left.removeAll { $0.call.result != nil }
        let avoided = Set(left.compactMap(\.image))
        // They keep what was found, also of an image that was avoided.
        if names?.access.avoided != avoided { names = Names(avoiding: avoided) }
        return left.count < Self.maximumLeft ? names : nil
    }
}

/// What has been found for the reports so far.
///
/// `@unchecked Sendable`: of its threads one runs at a time, and who leaves a thread leaves this to it.
private final class Names: @unchecked Sendable {
    let access: ImageAccess
    private(set) var builder: ReportBuilder?

    init(avoiding avoided: Set<ImageIdentity>) { access = ImageAccess(avoiding: avoided) }

    /// Begins to name a report; `nil` if the system refuses the thread.
    func call(
        _ draft: ReportDraft, _ makeBuilder: @escaping @Sendable () -> ReportBuilder,
        whenLate: @escaping @Sendable (StallReport) -> Void
    ) -> LateCall<StallReport>? {
        try? LateCall(name: "stallwatch-sym", namesFunctions: true) { [self] call in
            let builder = self.builder ?? makeBuilder()
            self.builder = builder
            builder.symbolication.symbolicator.use(access)
            return builder.report(of: draft.record, draft: draft.report) { unfinished in
                // What is half done may be older by then than what is delivered.
                call.inTime { whenLate(unfinished) }
            }
        }
    }
}

extension StallReport {
    /// Says that functions have no names, because there was no time to find them.
    mutating func excuseMissingNames() {
        let reason = "the names were not found in time"
        for index in images.indices { images[index].reason = reason }
        missingCulpritReason = reason
    }
}
