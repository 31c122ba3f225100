import CoreFoundation

/// What a run loop has to do, and the steps that it takes then.
struct OrderCase: Sendable {
    let what: String
    let steps: @Sendable () -> [LoopOrder.Step]

    /// A case whose run ends once the loop has done so many callouts and goes to wait again.
    private init(
        _ what: String, callouts: Int, returnAfterSource: Bool = false, runs: Int = 1,
        _ prepare: @escaping @Sendable (LoopOrder) -> Void
    ) {
        self.init(what) {
            let order = LoopOrder(callouts)
            prepare(order)
            for _ in 0..<runs { order.run(returnAfterSource: returnAfterSource) }
            order.removeSources()
            return order.steps
        }
    }

    private init(_ what: String, _ steps: @escaping @Sendable () -> [LoopOrder.Step]) {
        self.what = what
        self.steps = steps
    }

    /// Each kind of callout alone.
    static let callouts = [
        OrderCase("nothing, for 10 ms") {
            // More callouts than come, so that only the time ends the run.
            let order = LoopOrder(1)
            order.run(for: 0.01)
            return order.steps
        },
        OrderCase("a timer", callouts: 1) { $0.addTimer() },
        OrderCase("two timers", callouts: 2) { order in
            order.addTimer()
            order.addTimer()
        },
        OrderCase("a source0", callouts: 1) { $0.addSource0().signalWithoutWaking() },
        OrderCase("a source1", callouts: 1) { $0.addSource1() },
        OrderCase("a block (`CFRunLoopPerformBlock`)", callouts: 1) { $0.perform() },
        OrderCase("three blocks of the main queue", callouts: 3) { order in
            for _ in 0..<3 { order.addMainQueueBlock() }
        },
    ]

    /// Work that makes more work.
    static let chains = [
        OrderCase("a timer that performs a block", callouts: 2) { order in order.addTimer { order.perform() } },
        OrderCase("a source0 that signals itself once", callouts: 2) {
            $0.addSource0(times: 2).signalWithoutWaking()
        },
        OrderCase("a timer that submits a block to the main queue", callouts: 2) { order in
            order.addTimer { order.addMainQueueBlock() }
        },
        OrderCase("a block of the main queue that submits another one", callouts: 2) { order in
            order.addMainQueueBlock { order.addMainQueueBlock() }
        },
        OrderCase("a timer that runs the loop for a source0", callouts: 2) { order in
            let source = order.addSource0()
            order.addTimer {
                source.signalWithoutWaking()
                order.runInCallout()
            }
        },
        OrderCase("a timer that stops the loop", callouts: 2) { order in order.addTimer { CFRunLoopStop(order.loop) } },
    ]

    /// Runs that return after a source, as those of `RunLoop.run()` and `run(mode:before:)`.
    static let runs = [
        OrderCase("that source0, in two runs that return after a source", callouts: 2, returnAfterSource: true, runs: 2)
        {
            $0.addSource0(times: 2).signalWithoutWaking()
        },
        OrderCase(
            "a block of the main queue, in a run that returns after a source", callouts: 1, returnAfterSource: true
        ) {
            $0.addMainQueueBlock()
        },
        OrderCase("a timer, in a run that returns after a source", callouts: 1, returnAfterSource: true) {
            $0.addTimer()
        },
    ]

    /// Mistakes: the loop does not do what was meant.
    static let mistakes = [
        OrderCase("a block that another thread performs without waking the loop", callouts: 1) { order in
            order.duringWait("a block is performed") { order.perform() }
        },
        OrderCase("a source0 that another thread signals without waking the loop", callouts: 1) { order in
            let source = order.addSource0()
            order.duringWait("the source is signaled") { source.signalWithoutWaking() }
        },
        emptyRun("a mode without timers and sources", LoopOrder(1, mode: DrivenLoop.mode("empty"))),
        emptyRun("the common modes, as a mode", LoopOrder(1, mode: kCFRunLoopCommonModes)),
    ]

    static let all = callouts + chains + runs + mistakes

    /// A run in a mode that has observers only.
    private static func emptyRun(_ what: String, _ make: @escaping @autoclosure @Sendable () -> LoopOrder) -> OrderCase
    {
        OrderCase(what) {
            let order = make()
            order.run(for: 0.01)
            return order.steps
        }
    }
}
