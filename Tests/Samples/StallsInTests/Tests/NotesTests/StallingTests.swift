import Dispatch
import Foundation
import Notes
import StallWatchTesting
import Testing

/// The 8 tests that stall, each in another way.
@Suite(.serialized, .noStalls(over: .milliseconds(100)), .wallClock) @MainActor
struct StallingTests {
    @Test func syncRead() throws {
        let path = NSTemporaryDirectory() + "notes-\(getpid()).fifo"
        try #require(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        Thread.detachNewThread {
            let descriptor = open(path, O_WRONLY)
            usleep(300_000)
            _ = write(descriptor, "note", 4)
            close(descriptor)
        }
        #expect(NoteStore().load(from: path)?.count == 4)
    }

    @Test func threadSleep() {
        NoteStore().retry()
    }

    @Test func lockHeldByBackgroundTask() {
        #expect(NoteStore().count() == 3)
    }

    @Test func semaphore() async {
        await Task.yield()
        NoteStore().search()
    }

    @Test func deadlock() async {
        let accounts = Accounts()
        let mayGoOn = DispatchSemaphore(value: 0)
        await withCheckedContinuation { (isHeld: CheckedContinuation<Void, Never>) in
            Thread.detachNewThread { accounts.transferBack { _ = (isHeld.resume(), mayGoOn.wait()) } }
        }
        accounts.transfer { mayGoOn.signal() }
    }

    @Test(.noStalls(over: .milliseconds(200), on: [.cooperativePool()])) func starvedPool() async {
        await Thumbnails.makeAll(2 * ProcessInfo.processInfo.activeProcessorCount)
    }

    @Test func slowJSON() throws {
        let note = Note(title: "title", text: String(repeating: "word ", count: 50), tags: ["a", "b", "c"])
        let json = try JSONEncoder().encode(Array(repeating: note, count: 500))
        #expect(try NoteStore().importNotes(json, times: 120) == 60_000)
    }

    @Test func childProcess() async throws {
        try await Task { @MainActor in try NoteStore().format() }.value
    }
}
