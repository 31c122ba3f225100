// The usual fixes of docs/causes: code that compiles and that no program runs.

import Dispatch
import Foundation
import Synchronization

struct Note: Codable, Sendable {
    var title: String
}

@MainActor func show(_ notes: [Note]) {}
func refresh() {}
@MainActor func showProgress(_ done: Int) {}

// Locks.

final class NoteStore: Sendable {
    private let notes = Mutex<[Note]>([])
    private let disk = DispatchQueue(label: "notes.disk")

    func save(to url: URL) {
        let copy = notes.withLock { $0 }
        disk.async { try? JSONEncoder().encode(copy).write(to: url) }
    }

    func add(_ note: Note) {
        notes.withLock { notes in addLocked(note, &notes) }
    }

    private func addLocked(_ note: Note, _ notes: inout [Note]) { notes.append(note) }
}

func download(_ url: URL, then finish: @escaping @Sendable (Data?) -> Void) {}

func data(of url: URL) async -> Data? {
    await withCheckedContinuation { continuation in
        download(url) { continuation.resume(returning: $0) }
    }
}

func notifyWhenDone(_ group: DispatchGroup) {
    group.notify(queue: .main) { refresh() }
}

// Deadlocks.

final class Account: Sendable {
    let id: Int
    let balance = Mutex(0)

    init(id: Int) { self.id = id }
}

func transfer(_ amount: Int, from: Account, to: Account) {
    let (first, second) = from.id < to.id ? (from, to) : (to, from)
    first.balance.withLock { one in
        second.balance.withLock { other in
            if first === from {
                (one, other) = (one - amount, other + amount)
            } else {
                (one, other) = (one + amount, other - amount)
            }
        }
    }
}

// Files.

@MainActor func loadNotes(from url: URL) async throws {
    let notes = try await Task.detached {
        try JSONDecoder().decode([Note].self, from: Data(contentsOf: url))
    }.value
    show(notes)
}

final class Journal: Sendable {
    private let queue = DispatchQueue(label: "journal")
    private let file: FileHandle

    init(_ file: FileHandle) { self.file = file }

    func append(_ entries: [Data]) {
        queue.async { [file] in
            for entry in entries { try? file.write(contentsOf: entry) }
            try? file.synchronize()
        }
    }
}

// Signals.

func refreshOnHangUp() -> any DispatchSourceSignal {
    signal(SIGHUP, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .main)
    source.setEventHandler { refresh() }
    source.resume()
    return source
}

// Sleeps.

func retryInASecond() {
    DispatchQueue.main.asyncAfter(deadline: .now() + 1) { refresh() }
}

@MainActor func retryInATask() async throws {
    try await Task.sleep(for: .seconds(1))
    refresh()
}

// Processors.

func digest(_ notes: [Note]) async -> Int {
    var sum = 0
    for (index, note) in notes.enumerated() {
        sum += note.title.utf8.count
        if index % 100 == 99 {
            await showProgress(index)
            await Task.yield()
        }
    }
    return sum
}

func titleNumber(_ text: String) -> Substring? {
    text.firstMatch(of: #/^No ([0-9]{1,9}) /#)?.1
}

// Contention.

func indexInTheBackground(_ notes: [Note]) {
    DispatchQueue.global(qos: .utility).async {
        for note in notes { _ = note.title.lowercased() }
    }
}

func mapOnFewThreads(_ notes: [Note]) async -> [Int] {
    let width = max(ProcessInfo.processInfo.activeProcessorCount - 1, 1)
    return await withTaskGroup(of: Int.self) { group in
        var lengths: [Int] = []
        for (index, note) in notes.enumerated() {
            if index >= width, let length = await group.next() { lengths.append(length) }
            group.addTask { note.title.utf8.count }
        }
        for await length in group { lengths.append(length) }
        return lengths
    }
}

// Pages.

func warmUp(_ url: URL) {
    DispatchQueue.global(qos: .utility).async {
        guard let data = try? Data(contentsOf: url, options: .alwaysMapped) else { return }
        var sum: UInt8 = 0
        for index in stride(from: 0, to: data.count, by: 4_096) { sum &+= data[index] }
        _ = sum
    }
}

func lines(of url: URL) throws -> Int {
    let file = try FileHandle(forReadingFrom: url)
    var count = 0
    while let part = try file.read(upToCount: 1 << 20), !part.isEmpty {
        count += part.count { $0 == UInt8(ascii: "\n") }
    }
    return count
}

// Children.

func compress(_ file: URL) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/gzip")
    process.arguments = [file.path]
    process.terminationHandler = { _ in DispatchQueue.main.async { refresh() } }
    try process.run()
}

func output(of program: String) async throws -> Data {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            let result = Result<Data, any Error> {
                let (process, pipe) = (Process(), Pipe())
                process.executableURL = URL(fileURLWithPath: program)
                process.standardOutput = pipe
                try process.run()
                let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
                process.waitUntilExit()
                return output
            }
            continuation.resume(with: result)
        }
    }
}

func follow(_ pipe: Pipe) {
    pipe.fileHandleForReading.readabilityHandler = { file in
        let part = file.availableData
        if part.isEmpty { file.readabilityHandler = nil }
    }
}

// The network.

func resolve(_ host: String, then finish: @escaping @Sendable (Int32) -> Void) {
    Thread.detachNewThread {
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, "443", nil, &found)
        if status == 0 { freeaddrinfo(found) }
        DispatchQueue.main.async { finish(status) }
    }
}

// Loops that never rest, or spin.

@MainActor final class Screen {
    private var isRefreshDue = false

    func noteChanged() {
        guard !isRefreshDue else { return }
        isRefreshDue = true
        DispatchQueue.main.asyncAfter(deadline: .now() + 0.05) { [self] in
            isRefreshDue = false
            refresh()
        }
    }
}

func readAll(_ source: any DispatchSourceRead, _ descriptor: Int32) {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = read(descriptor, &bytes, bytes.count)
    if count == 0 { source.cancel() }
}

func lookAgain(_ isDone: @escaping @Sendable () -> Bool) {
    guard !isDone() else { return refresh() }
    DispatchQueue.main.asyncAfter(deadline: .now() + 0.1) { lookAgain(isDone) }
}

func saveEveryMinute() {
    let timer = Timer(timeInterval: 60, repeats: true) { _ in refresh() }
    RunLoop.main.add(timer, forMode: .common)
}

func refreshWithoutARunLoop() -> any DispatchSourceTimer {
    let timer = DispatchSource.makeTimerSource(queue: .main)
    timer.schedule(deadline: .now() + 60, repeating: 60)
    timer.setEventHandler { refresh() }
    timer.resume()
    return timer
}

// Operations.

final class NoteServer: Sendable {
    func ask(_ answer: @escaping @Sendable (Result<Note, any Error>) -> Void) {}
    func stop() {}
}

func firstNote(of server: NoteServer) async throws -> Note {
    try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { reply in
            server.ask { result in reply.resume(with: result) }
        }
    } onCancel: {
        // The server then calls back with an error.
        server.stop()
    }
}

// Pools.

private let blockingCalls = DispatchQueue(label: "blocking calls")

func contents(of url: URL) async -> Data? {
    await withCheckedContinuation { continuation in
        blockingCalls.async { continuation.resume(returning: try? Data(contentsOf: url)) }
    }
}
