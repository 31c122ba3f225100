import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// Searches that the test answers itself, on the thread that the search has.
@Suite struct PeerSearchTests {
    /// What each search was asked, and whether the last one had another thread than the test.
    private final class Searches: Sendable {
        let asked = Mutex<[[PeerQuestion]]>([])
        let isOwnThread = Mutex(false)
        private let caller = pthread_self()
        /// What the thread's clock shows; each search takes 50 ms of a CPU.
        let timeOnCPU = Mutex<UInt64>(0)

        func answer(_ questions: [(question: PeerQuestion, since: UInt64)]) -> [PeerAnswer] {
            isOwnThread.withLock { $0 = pthread_equal(pthread_self(), caller) == 0 }
            asked.withLock { $0.append(questions.map(\.question)) }
            timeOnCPU.withLock { $0 += 50_000_000 }
            return questions.map { PeerAnswer(reason: "thread \($0.question.thread)") }
        }
    }

    private let searches = Searches()
    private let search: PeerSearch

    init() {
        search = PeerSearch(
            answers: { [searches] in searches.answer($0) },
            timeOnCPU: { [searches] in searches.timeOnCPU.withLock { $0 } })
    }

    private func question(_ thread: Int32, runs: UInt64 = 0) throws -> PeerQuestion {
        let number = try #require(SystemCallNames.current.number(of: "wait4"))
        let call = SystemCall(
            number: number, arguments: [1, 0, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
        return try #require(PeerQuestion(call, of: thread, runs: runs, GuardedMemory()))
    }

    private func isAnswered(_ question: PeerQuestion) -> Bool {
        eventually { search.answer(to: question).reason == "thread \(question.thread)" }
    }

    @Test func `one search on another thread answers all questions`() throws {
        let questions = try (1...3).map { try question($0) }
        for question in questions { search.ask(question, since: monotonicNow()) }
        #expect(search.answer(to: questions[0]).reason == "the search had not ended")
        search.begin()
        for question in questions { #expect(isAnswered(question)) }
        #expect(searches.asked.withLock { $0.map(Set.init) } == [Set(questions)])
        #expect(searches.isOwnThread.withLock { $0 })
    }

    @Test func `the same wait is asked about once, and another wait again`() throws {
        search.ask(try question(1), since: monotonicNow())
        search.begin()
        try #require(isAnswered(try question(1)))
        search.ask(try question(1), since: monotonicNow())
        search.begin(at: .max)
        #expect(isAnswered(try question(1)))
        search.ask(try question(1, runs: 7), since: monotonicNow())
        search.begin(at: .max)
        #expect(isAnswered(try question(1, runs: 7)))
        #expect(searches.asked.withLock { $0.map(\.count) } == [1, 1])
    }

    @Test func `the next search waits in proportion to the time on a CPU`() throws {
        let before = monotonicNow()
        search.ask(try question(1), since: before)
        search.begin(at: before)
        try #require(isAnswered(try question(1)))
        let after = monotonicNow()
        search.ask(try question(2), since: before)
        search.begin(at: before + 999_999_999)
        #expect(search.answer(to: try question(2)).reason == "the search had not ended")
        #expect(searches.asked.withLock { $0.count } == 1)
        search.begin(at: after + 1_000_000_000)
        #expect(isAnswered(try question(2)))
    }

    @Test func `a search that does not return is left, with its waits`() throws {
        let gate = Semaphore()
        let asked = Collected<[PeerQuestion]>()
        let search = PeerSearch(answers: { questions in
            asked.add(questions.map(\.question))
            if asked.all.count == 1 { gate.wait() }
            return questions.map { PeerAnswer(reason: "thread \($0.question.thread)") }
        })
        let (hanging, other) = (try question(1), try question(2))
        search.ask(hanging, since: monotonicNow())
        search.begin()
        #expect(eventually { asked.all.count == 1 })
        search.ask(other, since: monotonicNow())
        search.begin(at: monotonicNow() + PeerSearch.longestSearch)
        #expect(eventually { search.answer(to: other).reason == "thread 2" })
        #expect(search.answer(to: hanging).reason == "the search did not return")
        #expect(asked.all == [[hanging], [other]])
        gate.post()
        #expect(eventually { search.answer(to: hanging).reason == "thread 1" }, "an answer may come late")
    }

    @Test func `what exceeds the limit is left out and says so`() throws {
        for thread in 1...Int32(PeerSearch.maximumQuestions + 1) {
            search.ask(try question(thread), since: monotonicNow())
        }
        let last = try question(Int32(PeerSearch.maximumQuestions + 1))
        #expect(search.answer(to: last).reason == "the monitor searched for too many others")
    }
}
