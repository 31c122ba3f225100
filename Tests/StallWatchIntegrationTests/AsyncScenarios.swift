import CLinux
import Glibc

/// Stalls in async code, each below a chain of callers that is known.
struct AsyncScenario: Sendable, CustomStringConvertible {
    var name: String
    /// The async callers by the beginnings of their names, nearest first, up to the closure that the task began with.
    var callers: [String]
    var run: @Sendable () async -> Int

    var description: String { name }
}

/// Where the stalling thread says that it is there, and where it is told to go on.
final class StallGate: @unchecked Sendable {
    // `@unchecked Sendable`: everything is read and written with the lock held. A pthread mutex, because it has to stay
    // where it is, and the object does.
    private var lock = pthread_mutex_t()
    private var thread: Int32 = 0
    private var isOpen = false

    static let shared = StallGate()

    private init() {
        pthread_mutex_init(&lock, nil)
    }

    /// Stalls the calling thread until ``open()``; 20 s at most.
    func stall() {
        set {
            $0.thread = clinux_gettid(); $0.isOpen = false
        }
        let end = time(nil) + 20
        while !get(\.isOpen), time(nil) < end { for _ in 0..<1000 { spin() } }
        set { $0.thread = 0 }
    }

    /// The thread that stalls, waited for up to 2 minutes (other tests may keep the pool busy); `nil` if none came.
    func waitForThread() -> Int32? {
        for _ in 0..<120_000 {
            let thread = get(\.thread)
            if thread != 0 { return thread }
            usleep(1000)
        }
        return nil
    }

    func open() { set { $0.isOpen = true } }

    private func get<T>(_ path: KeyPath<StallGate, T>) -> T {
        pthread_mutex_lock(&lock)
        defer { pthread_mutex_unlock(&lock) }
        return self[keyPath: path]
    }

    private func set(_ change: (StallGate) -> Void) {
        pthread_mutex_lock(&lock)
        defer { pthread_mutex_unlock(&lock) }
        change(self)
    }
}

@inline(never) private func spin() {}

@inline(never) private func hold<T>(_ value: T) -> T {
    withUnsafePointer(to: value) { _ = UInt(bitPattern: $0) }
    return value
}

@inline(never) private func syncLeaf(_ n: Int) -> Int {
    StallGate.shared.stall()
    return hold(n)
}

@MainActor private final class Model {
    @inline(never) func level3(_ n: Int) async -> Int {
        let r = hold(syncLeaf(n))
        await Task.yield()
        return r + 1
    }
    @inline(never) func level2(_ n: Int) async -> Int { hold(await level3(n * 2)) &* 2 }
    @inline(never) func level1(_ n: Int) async -> Int { hold(await level2(n + 1)) + 1 }
}

private struct Plain {
    @inline(never) func p3(_ n: Int) async -> Int {
        let r = hold(syncLeaf(n))
        await Task.yield()
        return r
    }
    @inline(never) func p2(_ n: Int) async -> Int { hold(await p3(n)) &* 2 }
    @inline(never) func p1(_ n: Int) async -> Int { hold(await p2(n)) &* 2 }
    @inline(never) func neverSuspends(_ n: Int) async -> Int { hold(syncLeaf(n)) }
    @inline(never) func callsNeverSuspends(_ n: Int) async -> Int { hold(await neverSuspends(n)) }
    @inline(never) func throwing3(_ n: Int) async throws -> Int {
        let r = hold(syncLeaf(n))
        try await Task.sleep(nanoseconds: 1)
        return r
    }
    @inline(never) func throwing2(_ n: Int) async throws -> Int { hold(try await throwing3(n)) }
}

@inline(never) private func continuation(_ n: Int) async -> Int {
    hold(await withCheckedContinuation { $0.resume(returning: syncLeaf(n)) })
}

@inline(never) private func group(_ n: Int) async -> Int {
    await withTaskGroup(of: Int.self) { group in
        group.addTask { hold(await Plain().p2(n)) }
        var sum = 0
        for await each in group { sum &+= each }
        return sum
    }
}

@inline(never) private func asyncLet(_ n: Int) async -> Int {
    async let value = Plain().p2(n)
    return hold(await value)
}

@inline(never) private func generic<S: Sequence>(_ list: S, _ body: (S.Element) async -> Int) async -> Int {
    var sum = 0
    for each in list { sum &+= hold(await body(each)) }
    return sum
}

private protocol Worker: Sendable { func go(_ n: Int) async -> Int }
private struct RealWorker: Worker {
    @inline(never) func go(_ n: Int) async -> Int { hold(await generic([n]) { hold(syncLeaf($0)) }) }
}

private actor Counter {
    var count = 0
    func run(_ worker: any Worker) async -> Int {
        count += 1
        return hold(await worker.go(count))
    }
    func stall(_ n: Int) -> Int { hold(syncLeaf(n)) }
}

@inline(never) private func hop(_ n: Int) async -> Int { hold(await Counter().stall(n)) }

@inline(never) private func stream() async -> Int {
    let (stream, source) = AsyncStream<Int>.makeStream()
    source.yield(1)
    source.finish()
    var sum = 0
    for await each in stream.map({ hold(syncLeaf($0)) }) { sum &+= each }
    return sum
}

@inline(never) private func sleeper() async -> Int {
    try? await Task.sleep(nanoseconds: 1_000_000)
    return hold(syncLeaf(1))
}

@inline(never) private func callsSleeper() async -> Int { hold(await sleeper()) }

@inline(never) private func many(_ a: Int, _ b: Int, _ c: Int, _ d: Int, _ e: String, _ f: String, _ g: [Int]) async
    -> Int
{
    let r = hold(syncLeaf(a))
    await Task.yield()
    return r &+ b &+ c &+ d &+ e.count &+ f.count &+ g.count
}

@inline(never) private func callsMany(_ n: Int) async -> Int { hold(await many(n, 2, 3, 4, "a\(n)", "b", [n])) }

private enum Local {
    @TaskLocal static var value = 1
}

@inline(never) private func taskLocal(_ n: Int) async -> Int {
    await Local.$value.withValue(2) { hold(await Plain().p2(n)) }
}

@inline(never) private func cancellation(_ n: Int) async -> Int {
    await withTaskCancellationHandler {
        hold(await Plain().p2(n))
    } onCancel: {
    }
}

@inline(never) private func recursive(_ depth: Int) async -> Int {
    depth == 0 ? hold(syncLeaf(depth)) : hold(await recursive(depth - 1)) + 1
}

@inline(never) private func catches(_ n: Int) async -> Int { hold((try? await Plain().throwing2(n)) ?? 0) }

@inline(never) private func onMain(_ n: Int) async -> Int { hold(await MainActor.run { syncLeaf(n) }) }

extension AsyncScenario {
    /// A task's own closure is the last caller that has a name of ours.
    static let all: [AsyncScenario] = [
        .init(name: "MainActor, three deep", callers: ["Model.level2", "Model.level1"]) { await Model().level1(3) },
        .init(name: "nonisolated, three deep", callers: ["Plain.p2", "Plain.p1"]) { await Plain().p1(3) },
        .init(name: "detached", callers: ["Plain.p2", "Plain.p1"]) {
            await Task.detached { hold(await Plain().p1(3)) }.value
        },
        .init(name: "a callee that never suspends", callers: ["Plain.callsNeverSuspends"]) {
            hold(await Plain().callsNeverSuspends(3))
        },
        .init(name: "checked continuation", callers: []) { hold(await continuation(4)) },
        .init(name: "task group child", callers: ["Plain.p2"]) { hold(await group(4)) },
        .init(name: "async let child", callers: ["Plain.p2"]) { hold(await asyncLet(4)) },
        .init(
            name: "actor, existential, generic, closure",
            callers: ["generic", "RealWorker.go", "protocol witness", "Counter.run"]
        ) {
            hold(await Counter().run(RealWorker()))
        },
        .init(name: "actor hop", callers: []) { hold(await hop(4)) },
        .init(name: "AsyncStream.map", callers: ["AsyncMapSequence.Iterator.next"]) { hold(await stream()) },
        .init(name: "after a sleep", callers: ["callsSleeper"]) { hold(await callsSleeper()) },
        .init(name: "MainActor.run", callers: ["onMain"]) { hold(await onMain(3)) },
        .init(name: "many arguments", callers: ["callsMany"]) { hold(await callsMany(3)) },
        .init(name: "task-local value", callers: ["Plain.p2", "closure #1 in taskLocal"]) { hold(await taskLocal(3)) },
        .init(name: "cancellation handler", callers: ["Plain.p2", "closure #1 in cancellation"]) {
            hold(await cancellation(3))
        },
        .init(name: "recursion, ten deep", callers: Array(repeating: "recursive", count: 10)) {
            hold(await recursive(10))
        },
        .init(name: "throwing", callers: ["Plain.throwing2", "catches"]) { hold(await catches(3)) },
        .init(name: "immediate task", callers: []) { await Task { syncLeaf(3) }.value },
        .init(name: "task in a task", callers: ["Plain.p2"]) {
            hold(await Task { hold(await Task { hold(await Plain().p2(3)) }.value) }.value)
        },
        .init(name: "unsafe continuation", callers: []) {
            hold(await withUnsafeContinuation { $0.resume(returning: syncLeaf(1)) })
        },
    ]
}
