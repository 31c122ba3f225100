// What the modes measure, print and stall in.
import Dispatch
import Foundation
import Glibc
import StallWatch

func now() -> Double {
    var t = timespec(); clock_gettime(CLOCK_MONOTONIC, &t); return Double(t.tv_sec) + Double(t.tv_nsec) / 1e9
}
func ms(_ s: Double) -> String { String(format: "%.1f ms", s * 1e3) }
func rss() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return (Int(text.split(separator: " ").dropFirst().first ?? "0") ?? 0) * 4096
}
func fds() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? -1 }
func threads() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? -1 }

@inline(never) func sleepHere(_ m: UInt32) { usleep(m * 1000) }
@inline(never) func burn(_ m: Double) { let end = now() + m / 1e3; while now() < end {} }

func statsLine(_ m: StallMonitor) -> String {
    let s = m.statistics
    return
        "stalls \(s.stalls) suppressed \(s.suppressed) failedWrites \(s.failedWrites) lost \(s.reportsLost) recovered \(s.reportsRecovered) err \(s.lastWriteError.map { "\($0)" } ?? "-")"
}
// with a timer, so that the mode is not empty
func runFor(_ s: Double) {
    let keep = Timer.scheduledTimer(withTimeInterval: 3600, repeats: true) { _ in }
    RunLoop.main.run(until: Date(timeIntervalSinceNow: s)); keep.invalidate()
}
// the CPU time of each thread by its name, in ms
func threadTimes() -> [String: Double] {
    var all: [String: Double] = [:]
    for t in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? [] {
        guard let c = try? String(contentsOfFile: "/proc/self/task/\(t)/comm", encoding: .utf8),
            let s = try? String(contentsOfFile: "/proc/self/task/\(t)/schedstat", encoding: .utf8)
        else { continue }
        all[c.trimmingCharacters(in: .newlines), default: 0] += (Double(s.split(separator: " ")[0]) ?? 0) / 1e6
    }
    return all
}
func difference(_ a: [String: Double], _ b: [String: Double]) -> String {
    b.map { ($0.key, $0.value - (a[$0.key] ?? 0)) }.filter { $0.1 > 0.5 }.sorted { $0.1 > $1.1 }.map {
        "\($0.0) \(Int($0.1)) ms"
    }.joined(separator: ", ")
}
func onMain(after s: Double, _ body: @escaping () -> Void) {
    _ = Timer.scheduledTimer(withTimeInterval: s, repeats: false) { _ in body() }
}

final class Kept: @unchecked Sendable { var all: [UnsafeContinuation<Void, Never>] = []; let lock = NSLock() }
let kept = Kept()
@inline(never) func withCheckedContinuationOrTimeout(seconds: Double) async {
    await withUnsafeContinuation { (c: UnsafeContinuation<Void, Never>) in
        kept.lock.lock(); kept.all.append(c); kept.lock.unlock()
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) {
            kept.lock.lock(); let c = kept.all.removeFirst(); kept.lock.unlock(); c.resume()
        }
    }
}

@inline(never) func flushTheJournal() { Thread.sleep(forTimeInterval: 4) }
@inline(never) func waitForTheReply() { _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 2) }
@inline(never) func compressOnTarget() { burn(700); mark += 1 }
nonisolated(unsafe) var mark = 0

// Functions whose names double in length with each type.

enum P<A, B> {}
typealias T1 = P<Int, Int>
typealias T2 = P<T1, T1>
typealias T3 = P<T2, T2>
typealias T4 = P<T3, T3>
typealias T5 = P<T4, T4>
typealias T6 = P<T5, T5>
typealias T7 = P<T6, T6>
typealias T8 = P<T7, T7>
typealias T9 = P<T8, T8>
typealias T10 = P<T9, T9>
typealias T11 = P<T10, T10>
typealias T12 = P<T11, T11>
typealias T13 = P<T12, T12>
typealias T14 = P<T13, T13>
typealias T15 = P<T14, T14>
typealias T16 = P<T15, T15>
typealias T17 = P<T16, T16>
typealias T18 = P<T17, T17>
typealias T19 = P<T18, T18>
typealias T20 = P<T19, T19>
typealias T21 = P<T20, T20>
typealias T22 = P<T21, T21>
typealias T23 = P<T22, T22>
typealias T24 = P<T23, T23>
@inline(never) func layOutEditor22(_ t: T22.Type) { burn(600); mark += 1 }
@inline(never) func layOutEditor24(_ t: T24.Type) { burn(600); mark += 1 }
