import TestSupport
import Testing

@testable import StallReports

@Suite struct StallReportVictimsTests {
    private func words(
        callout: StallReport.Callout? = .source0, lasting milliseconds: Double = 3_000,
        _ change: (inout StallReport.Victims) -> Void
    ) throws -> String? {
        var victims = StallReport.Victims(totalWaitMilliseconds: 0)
        (victims.timers, victims.mainQueueItems) = (0, 0)
        change(&victims)
        var report = try StallReport.literal()
        (report.victims, report.callout, report.durationMilliseconds) = (victims, callout, milliseconds)
        return report.victimsInWords
    }

    @Test func nothingThatWaitedIsSaid() throws {
        #expect(try words { _ in } == "No timer, main-queue item or operation waited for it")
        #expect(try words { $0.mainQueueItems = nil } == "No timer or operation waited for it")
        #expect(
            try words(callout: .mainQueue) { _ in }
                == "No timer, later main-queue item or operation waited for it "
                + "(items that ran in the same turn are not counted)")
        #expect(
            try words(callout: .timer) { _ in } == "No other timer, main-queue item or operation waited for it",
            "it may have skipped firings itself")
        #expect(try StallReport.literal().victimsInWords == nil)
    }

    @Test func `the thread that waits for the loop's own lock is said to wait`() throws {
        let owners = [(11, "writer"), (12, "reader"), (4_700, "notes")] as [(Int32, String)]
        var report = try StallReport.literal()
        report.victims = StallReport.Victims(totalWaitMilliseconds: 0)
        report.cause = .init(
            kind: .deadlock, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0,
            blockedMilliseconds: 800, uncertaintyMilliseconds: 0)
        report.cause?.lock = StallReport.Lock(
            kind: .pthreadMutex, isDeadlock: true,
            owners: owners.map { .init(thread: .init(id: $0, name: $1), isRunning: false) })
        #expect(report.victimsInWords == "Waited for it: thread 12 \"reader\"")
        report.cause?.lock?.owners.removeLast()
        #expect(report.victimsInWords == "No operation waited for it", "the circle is another thread's")
    }

    @Test func timersItemsAndOperationsAreCounted() throws {
        let text = try words { victims in
            (victims.timers, victims.longestTimerDelayMilliseconds) = (1, 2_140)
            (victims.mainQueueItems, victims.longestItemWaitMilliseconds) = (14, 1_900)
            (victims.operations, victims.operationNames) = (3, ["GET /feed", "POST /notes"])
        }
        #expect(
            text
                == "Waited for it: a timer, 2.1 s late; 14 items of the main queue, the first for 1.9 s or longer; "
                + "3 operations were in flight (GET /feed, POST /notes)")
    }

    /// One may be what stalls the loop.
    @Test func `an operation in flight is not said to wait`() throws {
        #expect(
            try words { $0.operations = 1 } == "No timer or main-queue item waited for it; 1 operation was in flight")
        let alone = try words { ($0.timers, $0.mainQueueItems, $0.operations) = (nil, nil, 2) }
        #expect(alone == "2 operations were in flight")
    }

    @Test func skippedFiringsAreSaid() throws {
        let text = try words { victims in
            (victims.timers, victims.longestTimerDelayMilliseconds, victims.skippedFirings) = (3, 480, 4)
        }
        #expect(text == "Waited for it: 3 timers, one of them 480 ms late, 4 firings skipped")
    }

    @Test func turnsRightAfterItAreSaid() throws {
        let one = try words { ($0.laterTurns, $0.laterTurnsMilliseconds) = (1, 30) }
        #expect(
            one?.hasSuffix("operation waited for it; a turn of 30 ms came right after it, and may have waited for it")
                == true)
        let two = try words { victims in
            (victims.operations, victims.laterTurns, victims.laterTurnsMilliseconds) = (1, 2, 1_240)
        }
        #expect(
            two == "No timer or main-queue item waited for it; 1 operation was in flight; "
                + "2 turns of 1.2 s came right after it, and may have waited for it")
        let short = try words { ($0.laterTurns, $0.laterTurnsMilliseconds) = (1, 1.9) }
        #expect(short?.hasSuffix("operation waited for it") == true, "any turn may have one right before it")
    }

    /// A drain of the main queue has taken the items before it away.
    @Test func itemsBehindABlockOfTheMainQueueAreALeastNumber() throws {
        let text = try words(callout: .mainQueue) { victims in
            (victims.mainQueueItems, victims.longestItemWaitMilliseconds) = (1, 300)
        }
        #expect(text == "Waited for it: at least 1 item of the main queue, for 300 ms or longer")
    }

    @Test func whatIsNotKnownIsSaidWithItsReason() throws {
        let text = try words { victims in
            (victims.timers, victims.missing) = (nil, ["the timers: another layout"])
        }
        #expect(text == "Not known: the timers: another layout")
    }

    @Test func `a timer that was due before the stall is said to be`() throws {
        let text = try words(lasting: 300) { ($0.timers, $0.longestTimerDelayMilliseconds) = (1, 30_300) }
        #expect(text == "Waited for it: a timer, 30.3 s late, 30.0 s of it before the stall")
    }

    @Test func `without a callout, items that ran in the same turn are not known`() throws {
        let text = try words(callout: nil) { _ in }
        #expect(text?.hasSuffix("(items that ran in the same turn are not counted)") == true)
    }

    @Test func harmIsUnknownIfNothingIsKnownToWait() {
        func harm(omitsItems: Bool = false, _ change: (inout StallReport.Victims) -> Void) -> Double? {
            var victims = StallReport.Victims(totalWaitMilliseconds: 0)
            change(&victims)
            return victims.harmMilliseconds(omitsItems: omitsItems)
        }
        #expect(harm { _ in } == 0)
        #expect(harm { $0.missing = ["the timers: another layout"] } == nil)
        #expect(harm { ($0.missing, $0.totalWaitMilliseconds) = (["the timers: another layout"], 20) } == 20)
        #expect(harm { $0.operations = 1 } == nil, "it may not need the loop")
        #expect(harm { ($0.laterTurns, $0.laterTurnsMilliseconds) = (1, 9) } == 0)
        #expect(harm { ($0.laterTurns, $0.laterTurnsMilliseconds) = (1, 10) } == nil, "they may have waited")
        #expect(harm(omitsItems: true) { $0.mainQueueItems = 0 } == nil, "it was drained with others")
        #expect(harm(omitsItems: true) { $0.timers = 0 } == 0, "the loop has no main queue")
    }

    @Test func `whether items are omitted depends on the callout`() {
        #expect(StallReport.omitsItems(.mainQueue, of: .runLoop, nesting: 0))
        #expect(StallReport.omitsItems(.timer, of: .runLoop, nesting: 1))
        #expect(StallReport.omitsItems(nil, of: .runLoop, nesting: 0))
        #expect(!StallReport.omitsItems(.source0, of: .runLoop, nesting: 0))
        #expect(!StallReport.omitsItems(nil, of: .mainQueue, nesting: 0))
    }
}
