import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct EventPollsTests {
    @Test func `an event fires once, and the thread still gets it`() throws {
        let loop = try EpollThread()
        defer { loop.stop() }
        _ = try #require(loop.place())
        let fired = Semaphore()
        let polls = try #require(EventPolls { fired.post() })
        try #require(polls.begin(loop.descriptor))
        #expect(!polls.hasFired)
        loop.send()
        try #require(fired.wait(until: monotonicNow() + 30_000_000_000))
        #expect(polls.hasFired)
        #expect(eventually { loop.place() != nil }, "the thread has taken the event and waits again")
        polls.endAll()
        #expect(!polls.hasFired)
    }

    @Test func `a poll that has ended does not fire`() throws {
        let loop = try EpollThread()
        defer { loop.stop() }
        let fired = Semaphore()
        let polls = try #require(EventPolls { fired.post() })
        // The kernel ends polls a moment later. Until then it may refuse further ones.
        for _ in 0..<1_000 {
            _ = polls.begin(loop.descriptor)
            polls.endAll()
        }
        try #require(eventually { polls.begin(loop.descriptor) })
        polls.endAll()
        loop.send()
        #expect(!fired.wait(until: monotonicNow() + 50_000_000))
        #expect(!polls.hasFired)
    }

    @Test func `what is no descriptor is refused`() throws {
        let polls = try #require(EventPolls {})
        #expect(!polls.begin(-1))
        polls.endAll()
    }

    @Test func `polls leave no descriptor and no thread`() throws {
        let loop = try EpollThread()
        defer { loop.stop() }
        func threads() -> Int { ThreadIdentity.all().map(ThreadIdentity.init).count { $0.name == "stallwatch-evt" } }
        for _ in 0..<20 {
            let polls = try #require(EventPolls {})
            try #require(polls.begin(loop.descriptor))
        }
        #expect(eventually { threads() <= 3 }, "other tests have some at the same time")
    }
}
