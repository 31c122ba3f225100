import Dispatch
import Foundation
import Notes
import StallWatchTesting
import Testing

/// The 12 tests that do not stall: what they do takes long, but not on the main actor, or is short.
@Suite(.serialized, .noStalls(over: .milliseconds(100)), .wallClock)
struct HealthyTests {
    @Test @MainActor func empty() {}

    @Test func sleepingTask() async throws {
        try await Task.sleep(for: .milliseconds(300))
    }

    @Test @MainActor func sleepingTaskOnTheMainActor() async throws {
        try await Task.sleep(for: .milliseconds(300))
    }

    @Test func blockedThreadOfItsOwn() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                usleep(300_000)
                continuation.resume()
            }
        }
    }

    @Test @MainActor func thirtyMillisecondsOfWork() {
        #expect(NoteStore().sortWords(milliseconds: 30) > 0)
    }

    @Test @MainActor func sixtyMillisecondsOfWork() {
        #expect(NoteStore().sortWords(milliseconds: 60) > 0)
    }

    @Test @MainActor func manyShortTurns() async {
        for _ in 0..<50 {
            #expect(NoteStore().sortWords(milliseconds: 4) > 0)
            await Task.yield()
        }
    }

    @Test func workOffTheMainActor() async {
        let sum = await Task.detached {
            let clock = ThreadClock()
            var sum = 0
            while clock.milliseconds < 200 { sum &+= 1 }
            return sum
        }.value
        #expect(sum > 0)
    }

    @Test func callsToTheMainActor() async {
        for _ in 0..<20 {
            let sum = await NoteStore().sortWords(milliseconds: 5)
            #expect(sum > 0)
        }
    }

    @Test @MainActor func shortSleep() {
        usleep(20_000)
    }

    /// The file is in memory, because a disk may be slow, which is a stall.
    @Test @MainActor func smallFile() throws {
        let path = "/dev/shm/notes-\(getpid()).txt"
        try Data("note".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        #expect(NoteStore().load(from: path)?.count == 4)
    }

    @Test func blocksOnTheMainQueue() async {
        for _ in 0..<10 {
            await withCheckedContinuation { continuation in
                DispatchQueue.main.async {
                    usleep(5_000)
                    continuation.resume()
                }
            }
        }
    }
}
