import TestSupport
import Testing

@testable import StallReports

@Suite struct StallReportSummaryTests {
    @Test func theSummaryAddsPlaceAndCause() throws {
        var report = try StallReport.literal()
        report.culprit?.file = "/src/notes/NoteStore.swift"
        report.cause = StallReport.Cause(
            kind: .sleep, summary: "Slept for 812 of 812 ms in usleep.", confidence: .certain, onCPUMilliseconds: 0,
            runQueueMilliseconds: 0, blockedMilliseconds: 812, uncertaintyMilliseconds: 0)
        #expect(
            report.summary == """
                main stalled for 812 ms in NoteStore.save(_:) at NoteStore.swift:88 (timer)
                  why  Slept for 812 of 812 ms in usleep.
                  try  Do not wait with a time limit in NoteStore.save(_:) (NoteStore.swift:88): let a DispatchSource \
                call back when the event comes, and a timer when it does not.
                """)
        report.cause = nil
        report.culprit?.file = nil
        #expect(report.summary == report.headline)
    }

    @Test func `a title names the lock's owner, and blames no function that had no CPU`() throws {
        let owner = StallReport.LockOwner(thread: .init(id: 2, name: "writer"), stack: 1, isRunning: true)
        let lock = StallReport.Lock(kind: .pthreadMutex, isDeadlock: false, owners: [owner])
        var report = try report(cause(.lock, onCPU: 0, blocked: 500, lock: lock))
        report.callout = .mainQueue
        let title = "main stalled for 812 ms in NoteStore.save(_:) (main queue)"
        #expect(report.headline == title + ", held up by writeWAL() (WAL.swift:7)")
        report.cause?.confidence = .possible
        #expect(report.headline == title)
        report.cause?.confidence = .likely
        report.cause?.lock?.owners[0].waitsFor = .swiftMutex
        #expect(report.headline == title, "the last owner waits itself")
        report.cause?.lock?.owners[0].waitsFor = nil
        report.cause?.lock?.owners[0].time = .init(
            observedMilliseconds: 400, onCPUMilliseconds: 10, runQueueMilliseconds: 390)
        #expect(report.headline == title + ", held up by writeWAL() (WAL.swift:7)", "it got no CPU, and has the lock")
        report.cause?.kind = .throttled
        report.cause?.blockedMilliseconds = 249
        #expect(report.headline.hasSuffix(" 812 ms without a CPU, while it was in NoteStore.save(_:) (main queue)"))
        report.cause?.onCPUMilliseconds = 1
        #expect(report.headline == title, "a CPU alone would not have helped")
        (report.kind, report.callout, report.loop.label) = (.starvation, nil, "tasks")
        report.cause?.kind = .lock
        let held = "one of its threads was in NoteStore.save(_:), held up by writeWAL() (WAL.swift:7)"
        #expect(report.headline == "tasks kept work waiting for 812 ms: \(held)")
        report.state = .ongoing
        #expect(report.headline.hasPrefix("tasks has kept work waiting for 812 ms"))
    }

    /// Other priorities may have started tasks meanwhile, and other threads of an executor may have been elsewhere.
    @Test func `a starved pool is said to be no more than what is known`() throws {
        var report = try StallReport.literal()
        (report.kind, report.callout, report.cause) = (.starvation, nil, nil)
        (report.loop.label, report.loop.kind, report.loop.priorities) = ("tasks", .cooperativePool, ["medium"])
        var place = "one of its threads was in NoteStore.save(_:)"
        #expect(report.headline == "tasks kept work of medium priority waiting for 812 ms: \(place)")
        #expect(try StallReport(jsonData: report.jsonData()) == report)
        let threads = [1, 2, 3, 4, 5].map { (id: Int32) in StallReport.ThreadDescription(id: id) }
        report.stacks.append([0])
        let other = report.stacks.count - 1
        for (count, words) in [(1, "1 of its 5 threads was"), (2, "2 of its 5 threads were"), (5, "its threads were")] {
            report.samples[0].workers = [
                .init(stack: 0, threads: Array(threads.prefix(count))),
                .init(stack: other, threads: Array(threads.dropFirst(count))),
            ]
            place = "\(words) in NoteStore.save(_:)"
            #expect(report.headline == "tasks kept work of medium priority waiting for 812 ms: \(place)")
        }
        (report.loop.priorities, report.state) = (["high", "medium"], .ongoing)
        #expect(report.headline == "tasks has kept work of high or medium priority waiting for 812 ms: \(place)")
        (report.loop.label, report.loop.kind, report.loop.priorities) = ("io", .taskExecutor, nil)
        #expect(report.headline == "io has kept work waiting for 812 ms: one of its threads was in NoteStore.save(_:)")
    }

    @Test func `a loop as a whole has a word of its own where others have a cause`() throws {
        var report = try StallReport.literal()
        let words: [(StallKind, String)] = [
            (.saturation, "saturated"), (.spinning, "spinning"), (.modeStarvation, "mode"), (.notRun, "notRun"),
        ]
        for (kind, word) in words {
            report.kind = kind
            #expect(report.causeWord == word && StallReport.causeWords.contains(word))
        }
        report.kind = .stall
        #expect(report.causeWord == "unknown")
        report.cause = cause(.lock, onCPU: 0, blocked: 500)
        #expect(report.causeWord == "lock")
    }

    @Test func `a duration that may have begun much earlier is a least one`() throws {
        var report = try StallReport.literal()
        report.startUncertaintyMilliseconds = 103
        #expect(report.headline.hasPrefix("main stalled for at least 812 ms"))
        report.startUncertaintyMilliseconds = 80
        #expect(report.headline.hasPrefix("main stalled for 812 ms"))
    }

    /// The pool, whether the task is over, and the words.
    private static let pools: [(StallReport.Pool, StallState, String)] = [
        (
            .init(pinnedThreads: 1, width: 2, waitingTasks: 14, actor: "Store"), .ended,
            "1 of 2 threads of tasks for one priority was blocked for 812 ms in load() at Store.swift:12; "
                + "task 91 \"dns\" on the actor Store; 14 tasks waited"
        ),
        (
            .init(pinnedThreads: 2, width: 2, waitingTasks: 1, isComputing: true), .ongoing,
            "2 of 2 threads of tasks for one priority have been kept, one of them computing for 812 ms in load() at "
                + "Store.swift:12; task 91 \"dns\"; 1 task waited"
        ),
        (
            // The other one may have been blocked for a shorter time, or have computed.
            .init(pinnedThreads: 2, width: 4), .ended,
            "2 of 4 threads of tasks for one priority were kept, one of them blocked for 812 ms in load() at "
                + "Store.swift:12; task 91 \"dns\""
        ),
        (
            .init(pinnedThreads: 1, width: 1, waitingTasks: 0), .ended,
            "1 of 1 thread of tasks for one priority was blocked for 812 ms in load() at Store.swift:12; "
                + "task 91 \"dns\"; no task was seen waiting"
        ),
        (
            .init(pinnedThreads: 1), .ongoing,
            "1 thread of tasks has been blocked for 812 ms in load() at Store.swift:12; task 91 \"dns\""
        ),
    ]

    @Test(arguments: pools.indices) func `a pinned thread is one of how many`(index: Int) throws {
        let (pool, state, words) = Self.pools[index]
        var report = try StallReport.literal()
        (report.kind, report.state, report.pool, report.callout) = (.pinned, state, pool, nil)
        report.loop.label = "tasks"
        report.culprit = .init(function: "load()", image: nil, file: "/src/Store.swift", line: 12)
        report.context = .init(taskID: 91)
        report.context?.taskName = "dns"
        report.cause = nil
        #expect(report.summary == words)
        #expect(report.headline == words.replacing(" at Store.swift:12", with: ""))
        #expect(try StallReport(jsonData: report.jsonData()) == report)
    }

    @Test func theHeadlineOfAnOngoingStallSaysSo() throws {
        var report = try StallReport.literal()
        report.state = .ongoing
        report.culprit = nil
        report.callout = nil
        #expect(report.headline == "main stalled and has not come back after 812 ms")
    }
}

@Suite struct SampleSharesTests {
    @Test func `without weights, the nearest valid sample counts`() throws {
        var report = try StallReport.literal()
        #expect(report.sampleShares == [1, 0], "the second sample is invalid")
        report.samples[1].isValid = true
        let shares = report.sampleShares
        #expect(abs(shares[0] - (250.4 + 375.5) / 2 / 812.4) < 1e-9)
        #expect(abs(shares[0] + shares[1] - 1) < 1e-9)
    }

    @Test func weightsAreSharesOfTheirSum() throws {
        var report = try StallReport.literal()
        report.samples[0].weightMilliseconds = 30
        report.samples[1].weightMilliseconds = 10
        #expect(report.sampleShares == [0.75, 0.25])
    }

    @Test func aStallWithoutADurationHasShares() throws {
        var report = try StallReport.literal()
        report.durationMilliseconds = 0
        #expect(report.sampleShares == [1, 0])
        report.samples = []
        #expect(report.sampleShares.isEmpty)
    }

    @Test func theHeadlineStatesTheCulpritsShare() throws {
        var report = try StallReport.literal()
        report.culprit?.share = 0.7143
        #expect(report.headline == "main stalled for 812 ms, 71 % of it in NoteStore.save(_:) (timer)")
        report.culprit?.share = 0.996
        #expect(report.headline == "main stalled for 812 ms in NoteStore.save(_:) (timer)")
    }
}
