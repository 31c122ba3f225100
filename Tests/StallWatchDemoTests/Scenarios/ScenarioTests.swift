import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct ScenarioTests {
    @Test func namesAreUnique() {
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
    }

    @Test func thePromisedScenariosExist() {
        #expect(
            Set(Scenario.all.filter { $0.expected != nil }.map(\.name)).isSuperset(of: [
                "cpu-spin", "inlined", "sleep", "lock", "pipe-read", "timer", "source0", "main-queue", "perform-block",
                "mode-switch",
                "nested-stalls", "resident-thread", "run-until-loop", "gap-between-runs", "burst-main-queue",
                "saturated",
                "main-actor", "main-actor-at-once", "dispatch-main", "global-queue-full", "cooperative-pool-blocked",
                "glib-loop", "deep-recursion",
            ])
        )
        #expect(
            Set(Scenario.all.filter { $0.expected == nil }.map(\.name)).isSuperset(of: [
                "idle", "healthy-storm", "short", "busy-timers", "nested-waits", "sigstop", "under-load",
            ])
        )
        #expect(Scenario.all.count >= 60)
    }

    @Test func thePromisedCausesExist() {
        let kinds = [
            "mutex", "mutex-recursive", "mutex-checking", "mutex-adaptive", "mutex-robust", "mutex-inheriting",
        ]
        let locks = kinds + ["mutex-cxx", "mutex-swift", "nslock", "nsrecursivelock", "nscondition", "rwlock-writer"]
        let held = locks.flatMap { lock in ["computing", "sleeping", "writing"].map { "\(lock)-\($0)" } }
        let others = [
            "cpu-spin", "cpu-kernel-copy", "cpu-random", "half-and-half", "starved", "throttled", "paging", "source0",
            "usleep", "fsync", "fifo", "connect", "connect-tcp", "silent-server", "file-lock", "child-process",
            "rwlock-reader", "rwlock-readers", "lazy-global", "dispatch-once", "lock-chain", "busy-queue", "semaphore",
            "main-queue", "dispatch-group", "deadlock-two", "deadlock-three", "deadlock-main-queue", "deadlock-self",
        ]
        for name in held + others {
            #expect(Scenario.all.contains { $0.name == name && $0.expected?.cause != nil }, "\(name)")
        }
    }

    @Test func onlyStallsOverTheThresholdNeedAReport() {
        // These two change the threshold.
        let exceptions = ["loop-threshold", "threshold-lowered"]
        for scenario in Scenario.all where !exceptions.contains(scenario.name) {
            if scenario.expected == nil {
                #expect(scenario.stallFactor < 0.7, "\(scenario.name)")
            } else {
                #expect(scenario.stallFactor > 1.05, "\(scenario.name)")
            }
        }
    }

    @Test func everyExpectationCanFail() {
        for scenario in Scenario.all {
            guard let expected = scenario.expected else { continue }
            #expect(expected.function != nil || expected.differingSamples, "\(scenario.name)")
            #expect(expected.count > 0, "\(scenario.name)")
        }
    }

    @Test func theListHasALinePerScenario() {
        let lines = Scenario.list(Scenario.all).split(separator: "\n")
        #expect(lines.count == Scenario.all.count)
        for (line, scenario) in zip(lines, Scenario.all) { #expect(line.hasPrefix(scenario.name + " ")) }
        #expect(lines.contains { $0.hasSuffix("(reported in spinTheCPU(for:))") })
        #expect(lines.contains { $0.hasSuffix("(no report)") })
    }
}
