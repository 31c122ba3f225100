internal import CLinux
import LinuxSupport
import StallReports
import StallSymbols
import Synchronization

/// Names reports on a thread that is left and replaced when it does not return: a file system may never answer.
///
/// A thread that is left ends on its own. Until then, the image whose file it reads has no names.
struct NamingThread {
    /// The longest time in which the thread may use no CPU, in nanoseconds: it waits for a file, or for a lock of the app.
    static let patience: UInt64 = 2_000_000_000
    /// The most threads that are left at one time; then no report gets names until one of them ends.
    static let maximumLeft = 4
    /// The time between two looks at the thread, in nanoseconds.
    private static let interval: UInt64 = 20_000_000

    private let patience: UInt64
    private let makeBuilder: @Sendable () -> ReportBuilder
    private var lane: NamingLane?
    private var left: [(lane: NamingLane, image: ImageIdentity?)] = []

    init(patience: UInt64 = NamingThread.patience, _ makeBuilder: @escaping @Sendable () -> ReportBuilder) {
        (self.patience, self.makeBuilder) = (patience, makeBuilder)
    }

    /// Returns the report with names; `nil` if there is no time left, or no thread that could find them.
    ///
    /// `whenLate` receives it half done, on another thread, if that takes longer than the configuration's time limit.
    mutating func report(
        of draft: ReportDraft, unless isOver: () -> Bool, whenLate: @escaping @Sendable (StallReport) -> Void
    ) -> StallReport? {
        while !isOver(), let lane = current() {
            let answer = lane.report(of: draft, whenLate: whenLate)
            // Counted, because the process may be stopped for as long.
            var idleLooks: UInt64 = 0
            var used = lane.cpuTime
            while !answer.wait(until: monotonicNow() &+ Self.interval) {
                idleLooks = lane.cpuTime == used ? idleLooks + 1 : 0
                used = lane.cpuTime
                if isOver() || idleLooks >= patience / Self.interval { break }
            }
            if let report = answer.takeOrLeave() { return report }
            left.append((lane, lane.access.last))
            lane.close()
            self.lane = nil
        }
        return nil
    }

    /// Ends the thread, for which it waits if the thread has nothing to do.
    mutating func end() { lane.take()?.end() }

    /// Returns a thread that avoids the images in which others are stuck; `nil` if too many are.
    private mutating func current() -> NamingLane? {
        left.removeAll { $0.lane.hasEnded }
        let avoided = Set(left.compactMap(\.image))
        // A thread keeps what it has found, also of an image that was avoided.
        if let lane, lane.access.avoided == avoided { return lane }
        end()
        if left.count < Self.maximumLeft { lane = NamingLane.start(avoiding: avoided, makeBuilder) }
        return lane
    }
}

/// One thread with its builder, which no other one uses.
private final class NamingLane: Sendable {
    let access: ImageAccess
    private let jobs = Mailbox<@Sendable (ReportBuilder) -> Void>()
    private let worker = Worker(name: "stallwatch-sym", namesFunctions: true)
    private let thread = Atomic<Int32>(0)
    private let isDone = Atomic<Bool>(false)

    private init(avoiding avoided: Set<ImageIdentity>) { access = ImageAccess(avoiding: avoided) }

    /// Starts a thread; `nil` if the system refuses it.
    static func start(
        avoiding avoided: Set<ImageIdentity>, _ makeBuilder: @escaping @Sendable () -> ReportBuilder
    ) -> NamingLane? {
        let lane = NamingLane(avoiding: avoided)
        return (try? lane.worker.start { lane.run(makeBuilder) }) == nil ? nil : lane
    }

    var hasEnded: Bool { isDone.load(ordering: .acquiring) }
    var cpuTime: UInt64? { LinuxSupport.cpuTime(of: thread.load(ordering: .relaxed)) }

    func report(of draft: ReportDraft, whenLate: @escaping @Sendable (StallReport) -> Void) -> LateAnswer<StallReport> {
        let answer = LateAnswer<StallReport>()
        let job = { @Sendable (builder: ReportBuilder) in
            // What is half done may be older by then than what is delivered.
            let report = builder.report(of: draft.record, draft: draft.report) { unfinished in
                answer.inTime { whenLate(unfinished) }
            }
            answer.give(report)
        }
        jobs.put(job)
        return answer
    }

    func close() { jobs.close() }

    func end() {
        close()
        worker.finish(until: monotonicNow() &+ NamingThread.patience)
    }

    private func run(_ makeBuilder: () -> ReportBuilder) {
        thread.store(clinux_gettid(), ordering: .relaxed)
        let builder = makeBuilder()
        let symbolicator = builder.symbolication.symbolicator
        symbolicator.use(access)
        // Memory is released of what can be read again.
        while let job = jobs.next(beforeWaiting: symbolicator.releaseMemory) { job(builder) }
        isDone.store(true, ordering: .releasing)
    }
}

/// The result of work on another thread, which may come too late.
final class LateAnswer<Value: Sendable>: Sendable {
    private let state = Mutex((value: Value?.none, isLeft: false))
    private let hasCome = Semaphore()

    /// Stores the result, and returns whether it is too late.
    @discardableResult
    func give(_ value: Value) -> Bool {
        defer { hasCome.post() }
        return state.withLock { state in
            state.value = value
            return state.isLeft
        }
    }

    /// Runs `body` before it is too late, or never.
    func inTime(_ body: () -> Void) {
        state.withLock { if !$0.isLeft { body() } }
    }

    /// Waits for the result, until a deadline in monotonic nanoseconds; returns whether it has come.
    func wait(until deadline: UInt64) -> Bool { hasCome.wait(until: deadline) }

    /// Returns the result, or calls `leave`: it is too late from then on.
    func takeOrLeave(_ leave: () -> Void = {}) -> Value? {
        state.withLock { state in
            state.isLeft = true
            if state.value == nil { leave() }
            return state.value
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
