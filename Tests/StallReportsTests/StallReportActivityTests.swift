import Testing

@testable import StallReports

@Suite struct ActivityTests {
    @Test func aSaturationIsDescribedWithItsShares() {
        let activity = StallReport.Activity(turnsPerSecond: 498.6, busyShare: 0.991, cpuShare: 0.5)
        #expect(activity.sentence == "Busy for 99 % of the time; 499 turns a second; 50 % of a CPU")
    }

    @Test func aSpinIsDescribedWithItsDescriptor() {
        let activity = StallReport.Activity(
            turnsPerSecond: 1_234_567, cpuShare: 0.367, readyDescriptor: "descriptor 7, pipe:[4711]")
        #expect(
            activity.sentence == "1,234,567 turns a second; 37 % of a CPU; "
                + "descriptor 7, pipe:[4711], is always readable, and the app does not read it")
        #expect(
            StallReport.Activity(turnsPerSecond: 0, isModeEmpty: true).sentence
                == "The mode has no sources, so each run of the loop returns at once")
    }

    @Test func aStarvingModeIsDescribedWithWhatWaits() {
        var activity = StallReport.Activity(
            turnsPerSecond: 0, awaitedMode: "kCFRunLoopDefaultMode", isTimerDue: true, hasMainQueueWork: true)
        #expect(
            activity.sentence == "While the loop ran in another mode, "
                + "a timer of the mode kCFRunLoopDefaultMode was due and the main queue had work")
        activity.isTimerDue = false
        #expect(activity.sentence == "While the loop ran in another mode, the main queue had work")
    }

    @Test func everyKindHasItsVerb() {
        let kinds: [StallReport.Kind] = [.stall, .starvation, .saturation, .spinning]
        #expect(kinds.map(\.verbs.present) == ["stalls", "stalls", "is saturated", "spins"])
        #expect(kinds.map(\.verbs.past) == ["stalled for", "stalled for", "was saturated for", "spun for"])
        #expect(kinds.map(\.verbs.perfect).suffix(2) == ["has been saturated for", "has been spinning for"])
    }
}
