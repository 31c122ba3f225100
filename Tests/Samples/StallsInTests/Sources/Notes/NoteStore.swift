import Dispatch
import Foundation

/// The store of an app for notes, with the mistakes that tests should find.
@MainActor
public final class NoteStore {
    private let lock = NSLock()

    /// Creates a store.
    public init() {}

    /// Reads notes from a slow file.
    public func load(from path: String) -> Data? {
        // One line: to open a pipe waits for its writer, too.
        try? FileHandle(forReadingAtPath: path)?.readToEnd()  // stalls: syncRead
    }

    /// Waits before it tries again.
    public func retry() {
        Thread.sleep(forTimeInterval: 0.6)  // stalls: sleep
    }

    /// Counts the notes while a background task indexes them.
    public func count() -> Int {
        let isHeld = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [lock] in
            lock.lock()
            isHeld.signal()
            usleep(600_000)
            lock.unlock()
        }
        // One line: either may wait for longer.
        _ = (isHeld.wait(), lock.lock())  // stalls: lock
        defer { lock.unlock() }
        return 3
    }

    /// Waits for a search on a queue.
    public func search() {
        let done = DispatchSemaphore(value: 0)
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.6) { done.signal() }
        done.wait()  // stalls: semaphore
    }

    /// Converts notes that are too many to convert at once.
    public func importNotes(_ json: Data, times: Int) throws -> Int {
        var count = 0
        for _ in 0..<times {
            count += try JSONDecoder().decode([Note].self, from: json).count  // stalls: json
        }
        return count
    }

    /// Formats notes with a child process.
    public func format() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sleep")
        process.arguments = ["0.6"]
        // One line: the start may take longer.
        _ = try (process.run(), process.waitUntilExit())  // stalls: child
    }

    /// Waits in a task of its own, later: the caller is not on its stack.
    public nonisolated static func retryLater(then: @escaping @Sendable () -> Void) {
        Task.detached {
            try await Task.sleep(for: .milliseconds(200))
            await NoteStore().retry()
            then()
        }
    }

    /// Sorts words, for some milliseconds of CPU time.
    public func sortWords(milliseconds: Double) -> Int {
        let clock = ThreadClock()
        var sum = 0
        while clock.milliseconds < milliseconds {
            for _ in 0..<100 { sum += ["one", "two", "three", "four"].sorted().count }
        }
        return sum
    }
}

/// A note.
public struct Note: Codable, Sendable {
    /// The title.
    public var title: String
    /// The text.
    public var text: String
    /// The tags.
    public var tags: [String]

    /// Creates a note.
    public init(title: String, text: String, tags: [String]) {
        self.title = title
        self.text = text
        self.tags = tags
    }
}

/// The CPU time of the calling thread since the clock's creation.
public struct ThreadClock {
    private let start = Self.now()

    /// Creates a clock.
    public init() {}

    /// The milliseconds on a CPU.
    public var milliseconds: Double { Self.now() - start }

    private static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1_000 + Double(time.tv_nsec) / 1_000_000
    }
}
