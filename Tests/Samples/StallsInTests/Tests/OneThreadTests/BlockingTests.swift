import Dispatch
import Foundation
import Testing

/// Tests that block a thread of the task pool until another task has run.
///
/// They hang where the pool has one thread, as on a machine with one processor, and pass everywhere else.
@Suite(.serialized) struct BlockingTests {
    @Test func semaphore() async {
        let answer = DispatchSemaphore(value: 0)
        Task { answer.signal() }
        waitForTheAnswer(answer)
    }

    @Test func condition() async {
        let flag = Flag()
        Task { flag.set() }
        waitForTheCondition(flag)
    }

    @Test func group() async {
        let group = DispatchGroup()
        group.enter()
        Task { group.leave() }
        waitForTheGroup(group)
    }

    @Test func pipe() async {
        let pipe = Pipe()
        Task { pipe.fileHandleForWriting.write(Data("note".utf8)) }
        readThePipe(pipe)
    }

    @Test func polling() async {
        let flag = Flag()
        Task { flag.set() }
        lookAgainAndAgain(flag)
    }

    @Test func queue() async {
        let answer = DispatchSemaphore(value: 0)
        Task { answer.signal() }
        waitOnTheQueue(DispatchQueue(label: "notes"), answer)
    }
}

private func waitForTheAnswer(_ answer: DispatchSemaphore) {
    answer.wait()  // blocks: semaphore
}

private func waitForTheCondition(_ flag: Flag) {
    flag.condition.lock()
    defer { flag.condition.unlock() }
    while !flag.isSet { flag.condition.wait() }  // blocks: condition
}

private func waitForTheGroup(_ group: DispatchGroup) {
    group.wait()  // blocks: group
}

private func readThePipe(_ pipe: Pipe) {
    #expect(pipe.fileHandleForReading.readData(ofLength: 4).count == 4)  // blocks: pipe
}

private func lookAgainAndAgain(_ flag: Flag) {
    while !flag.isSetNow { usleep(1_000) }  // blocks: polling
}

private func waitOnTheQueue(_ queue: DispatchQueue, _ answer: DispatchSemaphore) {
    queue.sync { answer.wait() }  // blocks: queue
}

/// `@unchecked Sendable`: the condition's lock protects the variable.
private final class Flag: @unchecked Sendable {
    let condition = NSCondition()
    private(set) var isSet = false

    var isSetNow: Bool { condition.withLock { isSet } }

    func set() {
        condition.withLock {
            isSet = true
            condition.broadcast()
        }
    }
}
