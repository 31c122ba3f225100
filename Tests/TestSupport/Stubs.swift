package import LinuxSupport
package import StackCapture
public import StallReports
import Synchronization
package import Testing

extension LoadedImage {
    /// Returns an image for tests that depend only on its path and addresses.
    package static func stub(
        path: String, addresses: Range<UInt64>, buildID: [UInt8] = [], isExecutable: Bool = false
    ) -> LoadedImage {
        LoadedImage(
            path: path, base: addresses.lowerBound, addresses: addresses, buildID: buildID, isExecutable: isExecutable
        )
    }
}

package struct Words: MemoryReading {
    private let words: [UInt64: UInt64]

    package init(_ words: [UInt64: UInt64]) { self.words = words }

    package init(_ words: [UInt64], at address: UInt64) {
        self.init(Dictionary(uniqueKeysWithValues: words.indices.map { (address + 8 * UInt64($0), words[$0]) }))
    }

    package func bytes(at address: UInt64, count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        for at in address..<address + UInt64(count) {
            guard let word = words[at & ~7] else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: word >> (at % 8 * 8)))
        }
        return bytes
    }
}

extension CapturedStack {
    /// Returns a complete stack with exact addresses, innermost first.
    package static func stub(
        _ addresses: [UInt64], method: StallReport.CaptureMethod = .read, state: StallReport.ThreadState = .blocked
    )
        -> CapturedStack
    {
        CapturedStack(
            method: method, threadState: state, frames: addresses.map { CapturedFrame(address: $0, isExact: true) },
            isComplete: true, heldNanoseconds: 0, captureNanoseconds: 0
        )
    }
}

/// A report as a newer version may write it, with fields that this version does not know.
package let reportLiteral = """
    {
      "schemaVersion": 1,
      "id": "01936c1e-7a52-7c3e-9d0e-5f3b8a1c2d4e",
      "kind": "stall",
      "state": "ended",
      "startedAt": "2026-11-21T08:00:00.123456Z",
      "durationMilliseconds": 812.4,
      "thresholdMilliseconds": 250,
      "process": {
        "name": "notes", "pid": 4700, "startedAt": "2026-11-21T07:59:01.000000Z",
        "executable": "/opt/notes/bin/notes", "architecture": "x86_64", "operatingSystem": "Debian GNU/Linux 12",
        "kernel": "6.18.44", "hostname": "web-3", "bootID": "5c9d", "color": "unknown to this version"
      },
      "metadata": { "version": "1.4.2", "environment": "production" },
      "loop": {
        "label": "main", "kind": "runLoop", "mode": "kCFRunLoopDefaultMode", "turn": 1234, "nesting": 0,
        "thread": { "id": 4700, "name": "notes" }
      },
      "callout": "timer",
      "repeats": 0,
      "weather": { "kind": "rain", "confidence": "certain", "forecast": [1, 2, null] },
      "culprit": { "function": "NoteStore.save(_:)", "line": 88, "image": "notes", "author": null },
      "samples": [
        { "atMilliseconds": 250.4, "stack": 0, "threadState": "blocked", "method": "read", "isValid": true,
          "isComplete": true, "heldMicroseconds": 0, "captureMicroseconds": 182.5 },
        { "atMilliseconds": 375.5, "reason": "the thread has ended", "isValid": false, "isComplete": false,
          "heldMicroseconds": 0, "captureMicroseconds": 0 }
      ],
      "stacks": [ [0, 1, 2], [0] ],
      "frames": [
        { "image": 1, "offset": "0x8a1c4", "function": "pthread_mutex_lock", "symbol": "pthread_mutex_lock",
          "isInApp": false, "kind": "code" },
        { "image": 0, "offset": "0x1f3a0", "function": "NoteStore.save(_:)", "symbol": "$s5notes9NoteStoreC4saveyyAA4NoteVF",
          "isInApp": true, "kind": "code" },
        { "image": 1, "offset": "0x3e9f10", "isInApp": false, "kind": "code" }
      ],
      "images": [
        { "name": "notes", "path": "/opt/notes/bin/notes", "buildID": "3b1e", "baseAddress": "0x55d0c8a00000" },
        { "name": "libc.so.6", "path": "/usr/lib/x86_64-linux-gnu/libc.so.6", "baseAddress": "0x7f1c31400000" }
      ],
      "monitor": {
        "version": "0.1.0", "watchdogLateMilliseconds": 0.2, "captureMethods": ["read", "ptrace"],
        "suppressed": { "rateLimit": 0, "repeats": 0, "debugger": 0 }
      }
    }
    """

extension StallReport {
    package static func literal() throws -> StallReport {
        try StallReport(jsonData: Array(reportLiteral.utf8))
    }
}

/// The number of excuses that a whole test run may need; past it, the clock excuses nothing.
private let excuseLimit = 10
private let excuses = Atomic<Int>(0)

/// Counts an excuse, and returns whether it is within the limit.
private func mayExcuse() -> Bool {
    excuses.add(1, ordering: .relaxed).newValue <= excuseLimit
}

extension CPUSteal {
    /// Turns the failures in `body` into known issues, if the host has taken too much CPU since this was read; only for
    /// expectations that the clock decides: no program in the machine can see or prevent such a delay.
    package func excuses(_ body: () -> Void) {
        withKnownIssue("the host gave this machine's CPUs to others", isIntermittent: true) {
            body()
        } matching: { _ in
            isDisturbing && mayExcuse()
        }
    }
}

/// The number of times that ``remeasured(watchHost:record:isolation:_:until:)`` measures at most.
package let maximumMeasurements = 5

/// Repeats a measurement while the host of the virtual machine takes its CPUs away (see ``CPUSteal``).
///
/// Only `isOnTime`, which the clock alone may decide, can cause a repetition. An expectation inside `measure` is judged
/// in every attempt. The result of `watchHost` says whether the host has since taken too much. `record` records a
/// repetition; by default as a known issue, which Swift Testing counts and prints at the end. Returns the first
/// measurement that is on time or undisturbed, or else the last one, which the test judges.
package func remeasured<Value>(
    watchHost: () -> () -> Bool = {
        let steal = CPUSteal()
        return { steal.isDisturbing && mayExcuse() }
    },
    record: (Comment) -> Void = { comment in withKnownIssue { Issue.record(comment) } },
    isolation: isolated (any Actor)? = #isolation, _ measure: () async throws -> Value,
    until isOnTime: (Value) -> Bool
) async throws -> Value {
    for attempt in 1..<maximumMeasurements {
        let isDisturbed = watchHost()
        let value = try await measure()
        guard !isOnTime(value), isDisturbed() else { return value }
        record("attempt \(attempt) gave \(value) while the host took the CPUs: measured again")
    }
    return try await measure()
}

/// Tests write addresses as the JSON has them.
extension StallReport.Address: ExpressibleByStringInterpolation {
    /// Reads hexadecimal digits after `0x`.
    public init(stringLiteral text: String) { self.init(UInt64(text.dropFirst(2), radix: 16) ?? 0) }
}
