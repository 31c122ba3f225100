import TestSupport
import Testing

@testable import StallReports

@Suite struct TaskChainTests {
    private func task(
        _ id: UInt64, _ wait: TaskList.Wait?, _ target: UInt64? = nil, thread: Int32? = nil, group: UInt64? = nil
    ) -> TaskList.Task {
        TaskList.Task(
            id: id, state: wait == nil ? .running : .suspended, wait: wait, target: target, thread: thread, group: group
        )
    }

    private func chain(
        _ tasks: [TaskList.Task], executors: [TaskList.Executor] = []
    ) -> (ids: [UInt64], end: TaskChain.End) {
        let chain = TaskChain(from: 1, in: TaskList(tasks: tasks, executors: executors))
        return (chain.tasks.map(\.id), chain.end)
    }

    @Test func aChainIsFollowedToWhatNobodyIsKnownToEnd() {
        let found = chain([task(1, .task, 2), task(2, .task, 3), task(3, .continuation)])
        #expect(found.ids == [1, 2, 3])
        #expect(found.end == .continuation)
        #expect(chain([task(1, .sleep)]).end == .sleep)
        #expect(chain([task(1, .pool)]).end == .pool)
    }

    @Test func `a chain ends at the thread that runs a task or an actor`() {
        #expect(chain([task(1, nil, thread: 9)]).end == .thread(9))
        #expect(chain([task(1, .task, 2), task(2, nil, thread: 9)]).end == .thread(9))
        let busy = TaskList.Executor(kind: .actor, name: "Cache", address: "0x10", thread: 8)
        #expect(chain([task(1, .executor, 0)], executors: [busy]).end == .thread(8))
        let idle = TaskList.Executor(kind: .actor, name: "Cache", address: "0x10")
        #expect(chain([task(1, .executor, 0)], executors: [idle]).end == .executor)
        #expect(chain([task(1, .executor, 3)], executors: [idle]).end == .executor)
    }

    @Test func tasksThatWaitForEachOtherAreACircle() {
        let found = chain([task(1, .task, 2), task(2, .task, 3), task(3, .task, 2)])
        #expect(found.ids == [1, 2, 3])
        #expect(found.end == .circle)
    }

    @Test func `a circle through a group is not certain`() {
        #expect(chain([task(1, .group, 5), task(2, .task, 1, group: 5)]).end == .unknown)
        let found = chain([task(1, .group, 5), task(2, .task, 1, group: 5), task(3, .sleep, group: 5)])
        #expect(found.ids == [1, 2])
        #expect(found.end == .unknown)
        // Outside of the circle, it does not matter.
        let outside = chain([
            task(1, .group, 5), task(2, .task, 4, group: 5), task(3, .sleep, group: 5), task(4, .task, 2),
        ])
        #expect(outside.end == .circle)
    }

    @Test func `of several children the one that was asked to end is followed`() {
        var tasks = [task(1, .group, 5), task(2, .sleep, group: 5), task(3, .continuation, group: 5)]
        #expect(chain(tasks).ids == [1, 2])
        tasks[2].isCanceled = true
        #expect(chain(tasks).ids == [1, 3])
        tasks[1].isCanceled = true
        #expect(chain(tasks).ids == [1, 2])
    }

    @Test func whatWasNotReadIsUnknown() {
        #expect(chain([task(1, .task, 2)]).end == .unknown)
        #expect(chain([task(1, .group, 2)]).end == .unknown)
        #expect(chain([task(1, nil)]).end == .unknown)
        #expect(chain([]).ids.isEmpty)
        let many = (1...200).map { task($0, .task, $0 + 1) }
        #expect(chain(many).ids.count == TaskChain.maximumTasks)
        #expect(chain(many).end == .unknown)
    }
}
