// The tests of docs/guides/StallsInTests.md. The first one fails.

import Notes
import StallWatchTesting
import Testing

@Suite(.noStalls(over: .milliseconds(100)))
struct RetryTests {
    @Test @MainActor func triesAgain() {
        NoteStore().retry()
    }
}

@Suite struct OtherForms {
    @Test(.stallBudget(warn: .milliseconds(50), fail: .seconds(5))) @MainActor func mayTakeLong() {
        NoteStore().retry()
    }

    @Test(.noStalls(over: .milliseconds(200), on: [.main, .cooperativePool()]))
    func makesThumbnails() async {
        await Thumbnails.makeAll(1)
    }

    @Test func sortsQuickly() async {
        await expectNoStalls(over: .milliseconds(50)) {
            _ = await NoteStore().sortWords(milliseconds: 5)
        }
    }
}

@Test(.hangDump(after: .seconds(30))) func sortsInTheBackground() async {
    _ = await NoteStore().sortWords(milliseconds: 5)
}
