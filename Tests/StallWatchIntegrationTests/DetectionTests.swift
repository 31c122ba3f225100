import CUnwindTestSupport
import Foundation
import Glibc
import LinuxSupport
import StallWatch
import TestSupport
import Testing

@testable import stallwatch_demo

/// What the watchdog does, and does not do, in a process of its own.
@Suite(.serialized) struct DetectionTests {
    static let threshold = Duration.milliseconds(250)

    /// How often the watchdog of a program of that shape wakes up in `duration`, once the program has settled.
    private func wakeUps(_ shape: HostShape, in duration: Duration) async throws -> Int {
        try await withDirectory { directory in
            let child = try DemoProgram.start(shape, threshold: Self.threshold, directory: directory)
            try await Task.sleep(for: .seconds(2))
            let before = child.wakeUps(ofThread: "stallwatch-dog")
            try await Task.sleep(for: duration)
            let after = child.wakeUps(ofThread: "stallwatch-dog")
            // The child is gone before an expectation is not met.
            let result = try #require(try await child.result())
            #expect(result.files.isEmpty)
            return try #require(after) - #require(before)
        }
    }

    @Test func theWatchdogSleepsWhileFiftyLoopsWait() async throws {
        let stolen = CPUSteal()
        let wakeUps = try await wakeUps(.waiting, in: .seconds(30))
        // Without the CPUs the program settles late.
        stolen.excuses { #expect(wakeUps == 0) }
    }

    /// Once, and for the age of the oldest turn that a look finds (a millisecond, here) a little earlier.
    @Test func turningLoopsWakeTheWatchdogOncePerThreshold() async throws {
        let wakeUps = try await wakeUps(.turning, in: .seconds(10))
        print("50 turning loops: \(wakeUps) wake-ups in 40 thresholds")
        #expect(wakeUps > 0)
        #expect(wakeUps <= 40 + 1)
    }

    @Test func aStoppedProcessIsCountedAndNotReported() async throws {
        let stolen = CPUSteal()
        try await withDirectory { directory in
            let child = try DemoProgram.start(.busy, threshold: Self.threshold, directory: directory)
            try await Task.sleep(for: .seconds(1))
            let stops = 10
            for _ in 0..<stops {
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...900)))
                kill(child.id, SIGSTOP)
                // For many thresholds: without the guard, each would be a stall.
                try await Task.sleep(for: .seconds(3))
                kill(child.id, SIGCONT)
            }
            try await Task.sleep(for: .seconds(1))
            let result = try #require(try await child.result())
            #expect(result.files.isEmpty)
            let counted = result.suppressed[.processStopped]
            #expect(counted >= stops)
            // A host that takes all CPUs away stops the process, too.
            stolen.excuses { #expect(counted == stops) }
        }
    }

    /// The rest of the program, and the watchdog in it, runs on meanwhile.
    @Test func aThreadStoppedByADebuggerIsNotReported() throws {
        let directory = try TemporaryDirectory()
        let host = try TestHost(["stalls", directory.path, "2000", "1", "2500", "2500"])
        #expect(host.firstLine().hasPrefix("B "))
        // From before the threshold on. What is left of the turn then is too short for a stall, by 1.5 s.
        #expect(cunwind_test_hold(host.pid, 2400))
        let lines = host.finish()
        #expect(lines.suffix(2) == ["D 1", "S 0"])
        let causes = try directory.reports().map(\.cause)
        #expect(causes.isEmpty)
    }
}
