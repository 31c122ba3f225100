import Foundation

struct Note: Codable {
    var title: String
    var text: String
    var tags: [String]
}

/// The notes and an index of their words, each behind a lock.
///
/// `@unchecked Sendable`: `notes` is only used with its lock.
final class NoteStore: @unchecked Sendable {
    private let lock = NSLock()
    private let indexLock = NSLock()
    private var notes: [Note] = []

    /// Sends the notes to a slow server, with the lock.
    func upload(hasLock: DispatchSemaphore) {
        lock.lock()
        hasLock.signal()
        Thread.sleep(forTimeInterval: 1.3)
        lock.unlock()
    }

    func count() -> Int {
        lock.lock()
        defer { lock.unlock() }
        return notes.count
    }

    /// Decodes an archive, again and again, so that it takes as long on each machine.
    func load(for duration: Duration) {
        let archive = (1...500).map { Note(title: "Note \($0)", text: "Buy milk.", tags: ["home", "today"]) }
        let json = (try? JSONEncoder().encode(archive)) ?? Data()
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            notes = (try? JSONDecoder().decode([Note].self, from: json)) ?? []
        }
    }

    /// Takes the lock of the notes first; the indexer takes that of the index first.
    func deleteAll() {
        lock.lock()
        startThread("indexer", updateIndex)
        // With `lock()` the app would hang for ever: the limit breaks the deadlock.
        if indexLock.lock(before: Date(timeIntervalSinceNow: 1.2)) { indexLock.unlock() }
        notes = []
        lock.unlock()
    }

    private func updateIndex(hasLock: DispatchSemaphore) {
        indexLock.lock()
        hasLock.signal()
        lock.lock()
        lock.unlock()
        indexLock.unlock()
    }
}

/// Runs `body` on a new thread, and waits until it has its lock.
func startThread(_ name: String, _ body: @escaping @Sendable (DispatchSemaphore) -> Void) {
    let hasLock = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        Thread.current.name = name
        body(hasLock)
    }
    hasLock.wait()
}
