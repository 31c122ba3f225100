import Notes
import StallWatchTesting
import XCTest

final class NotesXCTests: XCTestCase {
    @MainActor
    func testBlockingCodeThatSleeps() {
        assertNoStalls { NoteStore().retry() }
    }

    @MainActor
    func testBlockingCodeThatIsFast() {
        assertNoStalls { _ = NoteStore().sortWords(milliseconds: 30) }
    }

    func testAsyncCodeThatSleepsOnTheMainActor() async {
        await assertNoStalls { await NoteStore().retry() }
    }

    func testAsyncCodeThatSleepsInATask() async throws {
        try await assertNoStalls { try await Task.sleep(for: .milliseconds(300)) }
    }
}
