import StallReports
import Testing

@testable import StallWatchTesting

@Suite struct CodeTimeTests {
    private func cause(
        _ kind: StallReport.CauseKind, cpu: Double = 0, queue: Double = 0, blocked: Double = 0, uncertainty: Double = 0,
        throttled: Double? = nil
    ) -> StallReport.Cause {
        StallReport.Cause(
            kind: kind, summary: "", confidence: .certain, onCPUMilliseconds: cpu, runQueueMilliseconds: queue,
            blockedMilliseconds: blocked, uncertaintyMilliseconds: uncertainty, minorFaults: 0, majorFaults: 0,
            voluntarySwitches: 0, involuntarySwitches: 0, throttledMilliseconds: throttled
        )
    }

    private func time(
        _ duration: Double, _ cause: StallReport.Cause?, hasStack: Bool = true, seenBlocked: Double = 0,
        isOfPool: Bool = false
    ) -> CodeTime {
        CodeTime(
            duration: duration, cause: cause, .init(hasStack: hasStack, blocked: seenBlocked, isOfPool: isOfPool))
    }

    @Test func `time without a CPU does not count`() {
        let time = time(400, cause(.cpuContention, cpu: 60, queue: 340))
        #expect(time.least == 60)
        #expect(time.most == 60)
    }

    @Test func `time blocked counts`() {
        let time = time(300, cause(.sleep, cpu: 1, queue: 9, blocked: 290), seenBlocked: 280)
        #expect(time.least == 291)
        #expect(time.most == 291)
    }

    @Test func `throttled time is part of the time without a CPU and counts once`() {
        let time = time(500, cause(.throttled, cpu: 50, queue: 450, throttled: 440))
        #expect(time.most == 50)
    }

    @Test func `a sleep in a throttled group counts`() {
        let time = time(500, cause(.sleep, queue: 10, blocked: 490, throttled: 480), seenBlocked: 490)
        #expect(time.least == 490)
    }

    @Test func `uncertain time is not certain to be the code's`() {
        let time = time(200, cause(.cpu, cpu: 150, queue: 50, uncertainty: 70))
        #expect(time.least == 80)
        #expect(time.most == 150)
    }

    @Test func `time blocked that nothing shows is not certain`() {
        let unseen = time(390, cause(.cpuContention, cpu: 60, queue: 250, blocked: 80))
        #expect(unseen.least == 60)
        #expect(unseen.most == 140)
        let seen = time(390, cause(.cpuContention, cpu: 60, queue: 250, blocked: 80), seenBlocked: 30)
        #expect(seen.least == 90)
        #expect(time(390, cause(.cpuContention, cpu: 60, queue: 250, blocked: 80), seenBlocked: 300).least == 140)
        #expect(time(390, cause(.lock, cpu: 60, queue: 150, blocked: 180)).least == 240)
    }

    @Test func `time after the last observation is not certain`() {
        let time = time(1_924, cause(.cpuContention, cpu: 60, queue: 1_737, blocked: 47))
        #expect(time.least == 60)
        #expect(time.most == 187)
    }

    @Test func `an unknown split counts as the code's only with a stack`() {
        #expect(time(120, nil).least == 120)
        let unknown = time(120, nil, hasStack: false)
        #expect(unknown.least == 0)
        #expect(unknown.most == 120)
    }

    @Test func `a pool without a busy worker waits for a CPU`() {
        #expect(time(900, nil, isOfPool: true).most == 0)
    }

    @Test func `of a pool only blocked workers are certain`() {
        let time = time(900, cause(.cpu, cpu: 450, blocked: 450, uncertainty: 900), isOfPool: true)
        #expect(time.least == 450)
        #expect(time.most == 900)
    }

    @Test func `no part exceeds the duration or is negative`() {
        for queue in [-10.0, 0, 50, 1_000] {
            for uncertainty in [-5.0, 0, 80, 1_000] {
                let time = time(100, cause(.cpu, cpu: 100, queue: queue, blocked: 500, uncertainty: uncertainty))
                #expect(0 <= time.least && time.least <= time.most && time.most <= 100)
            }
        }
    }
}
