import LinuxSupport
import Synchronization

/// Finds out for whom waits wait, on a thread of its own: the watchdog asks, and comes back for the answer.
///
/// One search is for all waits that were asked about before. The next one begins after a time in proportion to what it
/// took of a CPU, so that searches of ``OpenFileSearch/maximumTime`` take 50 ms of a second.
final class PeerSearch: Sendable {
    typealias Question = (question: PeerQuestion, since: UInt64)

    /// The most waits that are known at one time; answers make room.
    static let maximumQuestions = 64
    /// The least time from the end of a search to the next, as a multiple of its time on a CPU: on a busy machine a
    /// search lasts longer, and costs no more.
    static let period: UInt64 = 20
    /// The least time between two attempts to start a thread that the system refuses, in nanoseconds.
    private static let patience: UInt64 = 1_000_000_000
    /// The time after which a search is left, in nanoseconds: a file system may never answer.
    static let longestSearch: UInt64 = 10_000_000_000
    /// The most searches at one time, all but one of which are left.
    static let maximumSearches = 4

    private struct State {
        /// Since when the threads wait, in nanoseconds of CLOCK_BOOTTIME, and what has been found out.
        var waits: [PeerQuestion: (since: UInt64, answer: PeerAnswer?)] = [:]
        /// When the next search may begin, in monotonic nanoseconds.
        var next: UInt64 = 0
        /// The number of the last search, its questions until it has returned, and how many have not returned.
        var (number, asked, running) = (0, [Question](), 0)
    }
    private let state = Mutex(State())
    private let answers: @Sendable ([Question]) -> [PeerAnswer]
    private let timeOnCPU: @Sendable () -> UInt64

    /// Creates a search on a thread whose time on a CPU a clock shows, in nanoseconds.
    init(
        answers: @escaping @Sendable ([Question]) -> [PeerAnswer] = { PeerFinder.answers(to: $0) },
        timeOnCPU: @escaping @Sendable () -> UInt64 = { threadTimeNow() }
    ) {
        (self.answers, self.timeOnCPU) = (answers, timeOnCPU)
    }

    /// Asks about a wait that began at a time in monotonic nanoseconds, unless it is known; never waits.
    func ask(_ question: PeerQuestion, since: UInt64) {
        state.withLock { state in
            guard state.waits[question] == nil else { return }
            if state.waits.count >= Self.maximumQuestions {
                state.waits = state.waits.filter { $0.value.answer == nil }
            }
            if state.waits.count < Self.maximumQuestions { state.waits[question] = (bootTime(at: since), nil) }
        }
    }

    /// Returns what has been found out; until then, why nothing has.
    func answer(to question: PeerQuestion) -> PeerAnswer {
        guard let wait = state.withLock({ $0.waits[question] }) else {
            return PeerAnswer(reason: "the monitor searched for too many others")
        }
        return wait.answer ?? PeerAnswer(reason: "the search had not ended")
    }

    /// Begins a search if there are questions and it is time; never waits.
    func begin(at now: UInt64 = monotonicNow()) {
        let begun = state.withLock { state -> (number: Int, asked: [Question])? in
            guard now >= state.next, state.running < Self.maximumSearches else { return nil }
            // What the last search does not find out may keep the next one, too.
            let left = PeerAnswer(reason: "the search did not return")
            for asked in state.asked { state.waits[asked.question]?.answer = left }
            let unanswered = state.waits.filter { $0.value.answer == nil }
            state.asked = unanswered.map { (question: $0.key, since: $0.value.since) }
            guard !state.asked.isEmpty else { return nil }
            state.number += 1
            state.running += 1
            state.next = monotonicNow() &+ Self.longestSearch
            return (state.number, state.asked)
        }
        guard let (number, asked) = begun,
            (try? WorkerThread(name: "stallwatch-peer") { self.search(for: asked, number) }) == nil
        else { return }
        state.withLock { state in
            state.asked = []
            state.running -= 1
            state.next = monotonicNow() &+ Self.patience
        }
    }

    private func search(for questions: [Question], _ number: Int) {
        let began = timeOnCPU()
        let found = answers(questions)
        state.withLock { state in
            for (asked, answer) in zip(questions, found) { state.waits[asked.question]?.answer = answer }
            state.running -= 1
            // Of a search that was left, another one has taken the place.
            guard number == state.number else { return }
            state.asked = []
            state.next = monotonicNow() &+ (timeOnCPU() &- began) &* Self.period
        }
    }
}
