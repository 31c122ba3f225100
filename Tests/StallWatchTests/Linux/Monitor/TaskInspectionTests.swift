import Glibc
import TestSupport
import Testing

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct TaskInspectionTests {
    /// The executor that a task waits for at 0x50, where that is the main actor's or another one.
    private func executor(
        _ dependency: SwiftTask.Dependency, runBy threads: [TaskThread], mainThread: Int32? = 1
    ) -> TaskList.Executor? {
        var task = SwiftTask(address: 0x1000, id: 1, isCanceled: false, isRunning: false)
        task.dependency = dependency
        let list = TaskInspection.list(
            of: TaskReading(tasks: [task], threads: threads), SwiftTaskMemory(Words([:]), metadata: 0xabc0),
            mainExecutor: 0x50, mainThread: mainThread
        ) { _ in 0 }
        return list.tasks.first.flatMap(list.executor)
    }

    @Test func `the main actor is on the thread that runs it, else on the main thread`() {
        let worker = TaskThread(id: 9, task: 0x2000, executor: 0x50)
        #expect(executor(.executor(0x50), runBy: [worker])?.thread == 9)
        #expect(executor(.executor(0x50), runBy: [])?.thread == 1)
        #expect(executor(.executor(0x50), runBy: [], mainThread: nil)?.thread == nil)
        #expect(executor(.executor(0x60), runBy: [worker])?.thread == nil)
    }

    @Test func `the main actor's thread is not known if its call is not shown`() {
        #if arch(x86_64)
            let call = 130
        #else
            let call = 133
        #endif
        #expect(TaskInspection.threadOfMainActor("\(call) 0x0 0x8") == nil)
        #expect(TaskInspection.threadOfMainActor(nil) == nil)
        for other in ["running", "-1 0x7ffc 0x7f00", "\(call + 1) 0x0"] {
            #expect(TaskInspection.threadOfMainActor(other) == getpid())
        }
    }

    @Test func `a thread that has gone on is not said to run the task`() {
        let tasks: [TaskList.Task] = [
            .init(id: 7, state: .running, thread: 91), .init(id: 8, state: .running, thread: 92),
        ]
        let executors: [TaskList.Executor] = [
            .init(kind: .actor, address: "0x60", thread: 92), .init(kind: .actor, address: "0x70", thread: 93),
            .init(kind: .mainActor, address: "0x50", thread: 1), .init(kind: .mainActor, address: "0x50", thread: 93),
        ]
        var list = TaskList(tasks: tasks, executors: executors)
        list.forgetThreads(ofTasks: [91], ofExecutors: [93, 1], mainThread: 1)
        #expect(list.tasks.map(\.thread) == [nil, 92])
        #expect(list.executors.map(\.thread) == [92, nil, 1, nil])
    }

    @Test func `of a task executor no thread is known`() {
        let worker = TaskThread(id: 9, task: 0x2000, executor: 0x60)
        let found = executor(.taskExecutor(0x60), runBy: [worker])
        #expect(found?.kind == .task && found?.thread == nil)
    }

    @Test func `an actor with many short jobs still ends a chain`() {
        let busy = TaskList.Executor(kind: .actor, address: "0x60", thread: 9)
        let waiting = TaskList.Task(id: 1, state: .enqueued, wait: .executor, target: 0)
        let chain = TaskChain(from: 1, in: TaskList(tasks: [waiting], executors: [busy]))
        let before = TaskThread(id: 9, task: 0x2000, executor: 0x60)
        func isSame(_ chain: TaskChain, _ now: TaskThread?) -> Bool { before.isSameEnd(of: chain, now: now) }
        #expect(isSame(chain, TaskThread(id: 9, task: 0x3000, executor: 0x60)))
        #expect(!isSame(chain, TaskThread(id: 9, task: 0x2000, executor: 0x70)))
        #expect(!isSame(chain, nil))
        let running = TaskChain(
            from: 2, in: TaskList(tasks: [TaskList.Task(id: 2, state: .running, thread: 9)], executors: []))
        #expect(!isSame(running, TaskThread(id: 9, task: 0x3000, executor: 0x60)))
    }

    /// A dependency may have extended the type, and an async function of its own may have a name that contains the word.
    @Test(
        arguments: [
            ("$sScTss5NeverORszABRs_rlE5sleep11nanosecondsys6UInt64V_tYaKFZTY0_", true),
            // What an optimized `Task.sleep(for:)` leaves of itself.
            ("$sScTss5NeverORszABRs_rlE6_sleep5until9tolerance5clocky7InstantQyd___FZs010ContinuousH0V_Tt2B5", true),
            ("$ss15ContinuousClockV5sleep5until9toleranceyAB7InstantV_s8DurationVSgtYaKFTY1_", true),
            ("$sScT7ServiceE5sleepyyYaFZTY0_", false), ("$sScTss5NeverORszABRs_rlE15sleepUntilReadyyyYaFZ", false),
            ("$s7Service5sleepyyYaF", false),
        ])
    func `only the functions of the standard library sleep`(symbol: String, isSleep: Bool) throws {
        var report = try StallReport.literal()
        report.frames = [
            .init(offset: "0x1", function: "sleep", symbol: symbol, isInApp: false, kind: .asyncCaller)
        ]
        report.stacks = [[0]]
        var list = TaskList(tasks: [TaskList.Task(id: 1, state: .suspended, wait: .continuation, stack: 0)])
        list.markSleeps(report)
        #expect((list.tasks[0].wait == .sleep) == isSleep)
    }
}
