package import StackCapture
package import StallReports

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

extension CapturedStack {
    /// Returns a complete stack with exact addresses, innermost first.
    package static func stub(_ addresses: [UInt64], method: Method = .read, state: ThreadState = .blocked)
        -> CapturedStack
    {
        CapturedStack(
            method: method, threadState: state, frames: addresses.map { Frame(address: $0, isExact: true) },
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
    /// Returns the report in ``reportLiteral``.
    package static func literal() throws -> StallReport {
        try StallReport(jsonData: Array(reportLiteral.utf8))
    }
}
