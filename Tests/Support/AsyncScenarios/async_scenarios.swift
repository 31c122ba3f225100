// Async functions that stall with known callers. The tests compile this file with and without the optimizer, stripped
// and not, and load it.

/// Stalls the calling thread for the test; set it before a scenario starts, never while one runs.
nonisolated(unsafe) private var stall: @convention(c) () -> Void = {}

/// Starts the scenario of that name in a new task, which calls `stalling` at its end and then `finished`; returns false
/// if there is no such scenario.
@_cdecl("start_async_scenario")
public func start(
    _ name: UnsafePointer<CChar>, _ stalling: @escaping @convention(c) () -> Void,
    _ finished: @escaping @Sendable @convention(c) () -> Void
) -> Bool {
    guard let run = scenarios[String(cString: name)] else { return false }
    stall = stalling
    Task.detached {
        _ = await run()
        finished()
    }
    return true
}

@inline(never) private func hold<T>(_ value: T) -> T {
    withUnsafePointer(to: value) { _ = UInt(bitPattern: $0) }
    return value
}

@inline(never) private func syncLeaf(_ n: Int) -> Int {
    stall()
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

private let scenarios: [String: @Sendable () async -> Int] = [
    "MainActor, three deep": { await Model().level1(3) },
    "nonisolated, three deep": { await Plain().p1(3) },
    "detached": { await Task.detached { hold(await Plain().p1(3)) }.value },
    "a callee that never suspends": { hold(await Plain().callsNeverSuspends(3)) },
    "checked continuation": { hold(await continuation(4)) },
    "task group child": { hold(await group(4)) },
    "async let child": { hold(await asyncLet(4)) },
    "actor, existential, generic, closure": { hold(await Counter().run(RealWorker())) },
    "actor hop": { hold(await hop(4)) },
    "AsyncStream.map": { hold(await stream()) },
    "after a sleep": { hold(await callsSleeper()) },
    "MainActor.run": { hold(await onMain(3)) },
    "many arguments": { hold(await callsMany(3)) },
    "task-local value": { hold(await taskLocal(3)) },
    "cancellation handler": { hold(await cancellation(3)) },
    "recursion, ten deep": { hold(await recursive(10)) },
    "throwing": { hold(await catches(3)) },
    "immediate task": { await Task { syncLeaf(3) }.value },
    "task in a task": { hold(await Task { hold(await Task { hold(await Plain().p2(3)) }.value) }.value) },
    "unsafe continuation": { hold(await withUnsafeContinuation { $0.resume(returning: syncLeaf(1)) }) },
]
