import LinuxSupport
import Synchronization

/// Finds out for whom waits wait, on a thread of its own: the watchdog asks, and comes back for the answer.
///
/// One search is for all waits that were asked about before. The next one begins after a time in proportion, so that
/// searches of ``OpenFileSearch/maximumTime`` take 50 ms of a second.
final class PeerSearch: Sendable {
    static let maximumQuestions = 64
    static let maximumAnswers = 64
    /// The least time from the beginning of a search to that of the next, as a multiple of what it took.
    static let period: UInt64 = 20
    /// The least time between two attempts to start a thread that the system refuses, in nanoseconds.
    private static let patience: UInt64 = 1_000_000_000

    private struct State {
        /// The questions without an answer, and since when the threads wait, in nanoseconds of CLOCK_BOOTTIME.
        var asked: [PeerQuestion: UInt64] = [:]
        var answers: [PeerQuestion: PeerAnswer] = [:]
        var isSearching = false
        /// When the next search may begin, in monotonic nanoseconds.
        var next: UInt64 = 0
    }
    private let state = Mutex(State())
    private let answers: @Sendable ([(question: PeerQuestion, since: UInt64)]) -> [PeerAnswer]

    init(
        answers: @escaping @Sendable ([(question: PeerQuestion, since: UInt64)]) -> [PeerAnswer] = {
            PeerFinder.answers(to: $0)
        }
    ) {
        self.answers = answers
    }

    /// Asks about a wait that began at a time in monotonic nanoseconds, unless it is known; never waits.
    func ask(_ question: PeerQuestion, since: UInt64) {
        let since = bootTime(at: since)
        state.withLock { state in
            guard state.answers[question] == nil, state.asked.count < Self.maximumQuestions else { return }
            if state.asked[question] == nil { state.asked[question] = since }
        }
    }

    /// Returns what has been found out; until then, why nothing has.
    func answer(to question: PeerQuestion) -> PeerAnswer {
        state.withLock { state in
            state.answers[question]
                ?? PeerAnswer(
                    reason: state.asked[question] == nil
                        ? "the monitor searched for too many others" : "the search had not ended")
        }
    }

    /// Begins a search if there are questions and it is time; never waits.
    func begin(at now: UInt64 = monotonicNow()) {
        let isDue = state.withLock { state in
            guard !state.asked.isEmpty, !state.isSearching, now >= state.next else { return false }
            (state.isSearching, state.next) = (true, now &+ Self.patience)
            return true
        }
        guard isDue else { return }
        let thread = try? WorkerThread(name: "stallwatch-peer") { self.search() }
        if thread == nil { state.withLock { $0.isSearching = false } }
    }

    private func search() {
        let began = monotonicNow()
        let questions = state.withLock { $0.asked.map { (question: $0.key, since: $0.value) } }
        let found = answers(questions)
        state.withLock { state in
            if state.answers.count + found.count > Self.maximumAnswers { state.answers.removeAll() }
            for (asked, answer) in zip(questions, found) {
                state.asked[asked.question] = nil
                state.answers[asked.question] = answer
            }
            (state.isSearching, state.next) = (false, began &+ (monotonicNow() &- began) &* Self.period)
        }
    }
}
