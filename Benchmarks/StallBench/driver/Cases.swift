// The stalls that are written in Swift. They run on the main actor, the main queue or the main run loop.
import Dispatch
import Foundation

/// What the optimizer must not remove.
nonisolated(unsafe) private var sink = 0.0

private func seconds(_ milliseconds: UInt32) -> Double { Double(milliseconds) / 1000 }

@inline(never) func sortNumbers(_ milliseconds: UInt32) {
    let end = bench_now() + seconds(milliseconds)
    while bench_now() < end { for step in 0..<300 { sink = sink * 0.5 + Double(step) } }
}

@inline(never) func loadImage(_ milliseconds: UInt32) { Thread.sleep(forTimeInterval: seconds(milliseconds)) }

@inline(never) func readCache(_ milliseconds: UInt32) {
    let lock = NSLock()
    let isHeld = DispatchSemaphore(value: 0)
    let thread = Thread {
        lock.lock()
        bench_owner(bench_thread(), "cache", "")
        isHeld.signal()
        Thread.sleep(forTimeInterval: seconds(milliseconds))
        lock.unlock()
    }
    thread.name = "cache"
    thread.start()
    isHeld.wait()
    lock.lock()
    lock.unlock()
}

@inline(never) func waitForGroup(_ milliseconds: UInt32) {
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) { usleep(milliseconds * 1000) }
    group.wait()
}

@inline(never) func waitForTask(_ milliseconds: UInt32) {
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
        try? await Task.sleep(for: .milliseconds(Int(milliseconds)))
        isDone.signal()
    }
    isDone.wait()
}

@inline(never) func refreshView(_ milliseconds: UInt32) {
    var left = timespec(tv_sec: 0, tv_nsec: Int(milliseconds) * 1_000_000)
    var rest = timespec()
    while nanosleep(&left, &rest) != 0 {
        bench_note_early()
        left = rest
    }
}

/// Runs a case in a task of the main actor: after the turn that starts it.
private func onMainActor(_ name: String, _ milliseconds: UInt32, _ body: @escaping @Sendable (UInt32) -> Void) {
    Task { @MainActor in
        if let index = cases.firstIndex(where: { String(cString: $0.name) == name }) {
            withUnsafePointer(to: cases[index]) { bench_begin($0) }
        }
        body(milliseconds)
        bench_end()
    }
}

nonisolated(unsafe) private let cases: [bench_case] = [
    row("swift-cpu", "sortNumbers", "cpu", 250, { sortNumbers($0) }),
    row("swift-sleep", "loadImage", "sleep", 120, { loadImage($0) }),
    row("swift-lock", "readCache", "lock", 250, { readCache($0) }),
    row("swift-group", "waitForGroup", "lock", 250, { waitForGroup($0) }),
    row("async-wait", "waitForTask", "lock", 250, { waitForTask($0) }),
    row("async-cpu", "sortNumbers", "cpu", 250, isDeferred: true) { onMainActor("async-cpu", $0, sortNumbers) },
    row("async-sleep", "refreshView", "sleep", 250, isDeferred: true) { onMainActor("async-sleep", $0, refreshView) },
]

/// The line on which a function of this file begins; 0 if the source is not there.
private func line(of function: String) -> Int32 {
    guard let text = try? String(contentsOfFile: #filePath, encoding: .utf8) else { return 0 }
    let index = text.components(separatedBy: "\n").firstIndex { $0.contains("func \(function)(") }
    return Int32((index ?? -1) + 1)
}

/// The strings live as long as the process.
private func row(
    _ name: String, _ function: String, _ cause: String, _ milliseconds: UInt32, isDeferred: Bool = false,
    _ stall: @escaping @convention(c) (UInt32) -> Void
) -> bench_case {
    bench_case(
        set: strdup("swift"), name: strdup(name), function: strdup(function), file: strdup("Cases.swift"),
        line: line(of: function),
        stall: stall, cause: strdup(cause), milliseconds: milliseconds, turns: 1, pause: 0, healthy: false,
        deferred: isDeferred)
}

/// Adds the cases to those of C.
@_cdecl("bench_more_cases")
func moreCases(_ all: UnsafeMutablePointer<bench_case>, _ most: UInt32) -> UInt32 {
    for (index, one) in cases.prefix(Int(most)).enumerated() { all[index] = one }
    return UInt32(min(cases.count, Int(most)))
}
