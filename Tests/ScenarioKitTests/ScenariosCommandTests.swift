import ArgumentParser
import Foundation
import Glibc
import StallReports
import StallWatch
import Testing
import TestSupport

@testable import ScenarioKit
@testable import stallwatch_scenarios

@Suite struct ScenariosCommandTests {
    @Test func allScenariosRunByDefault() throws {
        let command = try ScenariosCommand.parse([])
        #expect(try command.selectedScenarios().map(\.name) == Scenario.all.map(\.name))
        #expect(command.threshold == .standard)
        #expect(command.output == "stalls")
        #expect(command.summary == nil)
        #expect(command.loadSeconds == 5)
        #expect(!command.quiet && !command.list)
    }

    @Test func chosenScenariosKeepTheirOrderAndNumber() throws {
        let command = try ScenariosCommand.parse(["--scenario", "lock", "--scenario", "idle", "--scenario", "lock"])
        #expect(try command.selectedScenarios().map(\.name) == ["lock", "idle", "lock"])
    }

    @Test func everyOptionIsRead() throws {
        let command = try ScenariosCommand.parse([
            "--list", "--threshold", "1s", "--output", "there", "--summary", "summary.json", "--quiet",
        ])
        #expect(command.list && command.quiet)
        #expect(command.threshold.duration == .seconds(1))
        #expect(command.output == "there")
        #expect(command.summary == "summary.json")
    }

    @Test(arguments: [
        ["--scenario", "nonsense"], ["--scenario", ""], ["--threshold", "0ms"], ["--threshold", "-5ms"],
        ["--threshold", "soon"], ["--output", ""], ["--summary", ""], ["--judge", ""], ["--load-seconds", "0"],
        ["--soak", "soon"], ["--soak", "0s"], ["--healthy", "soon"], ["--rounds", "0"], ["--rounds", "10001"],
    ])
    func aWrongValueIsNamedInAUsageError(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try ScenariosCommand.parse(arguments) }
        guard let error else { return }
        #expect(ScenariosCommand.exitCode(for: error).rawValue == 64)
        #expect(ScenariosCommand.message(for: error).contains("'\(arguments[1])'"))
    }

    @Test func aSoakHasALengthAndASeed() throws {
        let command = try ScenariosCommand.parse([
            "--soak", "30m", "--seed", "42", "--step-clock", "--scenario", "idle",
        ])
        #expect(command.soak?.duration == .seconds(1800))
        #expect(command.seed == 42)
        #expect(command.stepClock)
        #expect(try !ScenariosCommand.parse(["--soak", "8h"]).stepClock)
    }

    @Test func judgingRunsNothing() throws {
        let command = try ScenariosCommand.parse(["--judge", "summary.json", "--output", "there"])
        #expect(command.judge == "summary.json")
        for option in [["--scenario", "idle"], ["--soak", "1m"], ["--rounds", "2"], ["--summary", "other.json"]] {
            #expect(throws: (any Error).self) { try ScenariosCommand.parse(["--judge", "summary.json"] + option) }
        }
    }

    @Test(arguments: [
        ["--seed", "1"], ["--step-clock"], ["--rounds", "2", "--soak", "1m"], ["--healthy", "1m", "--rounds", "2"],
    ])
    func optionsThatDoNotFitAreUsageErrors(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try ScenariosCommand.parse(arguments) }
        #expect(error.map { ScenariosCommand.exitCode(for: $0).rawValue } == 64)
    }

    @Test func anUnknownScenarioIsRefusedWithAllNames() {
        let error = #expect(throws: (any Error).self) { try ScenariosCommand.parse(["--scenario", "nonsense"]) }
        guard let error else { return }
        for scenario in Scenario.all { #expect(ScenariosCommand.message(for: error).contains(scenario.name)) }
    }

    @Test(arguments: [["--threshold"], ["--scenario"], ["--nonsense"], ["nonsense"]])
    func anUnknownOptionIsAUsageError(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try ScenariosCommand.parse(arguments) }
        guard let error else { return }
        #expect(ScenariosCommand.exitCode(for: error).rawValue == 64)
    }
}

@Suite struct ScenariosFailureTests {
    @Test(
        arguments: [
            (ENOSPC, 74), (EDQUOT, 74), (EIO, 74), (EFBIG, 74), (EACCES, 73), (EROFS, 73), (ENOENT, 73), (ENOTDIR, 73),
        ] as [(Int32, Int32)])
    func aFullDiskAndAWrongPathDifferInStatus(error: Int32, status: Int32) {
        #expect(ScenariosFailure("a file", errno: error).status.rawValue == status)
    }

    @Test func aFileCannotBeTheOutputDirectory() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("file", "")
        let error = #expect(throws: StallWatchError.self) { try StallMonitor(.init(outputs: [.directory(path)])) }
        let failure = error.map { ScenariosFailure($0) }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(path) == true)
    }
}

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
            "flock-of-child", "record-lock-of-child", "socket-to-child", "pipe-of-child", "stdio-lock", "linker-lock",
            "linger", "main-queue", "dispatch-group", "deadlock-two", "deadlock-three", "deadlock-main-queue",
            "deadlock-self",
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
            let judgesStacks = expected.differingSamples || !expected.stacks.isEmpty
            #expect(expected.function != nil || judgesStacks, "\(scenario.name)")
            #expect(expected.count > 0, "\(scenario.name)")
        }
    }

    @Test(arguments: AdviceRule.all.map(\.id))
    func `a rule has a stall that it is right for, a cured twin and a near miss`(rule: String) throws {
        func scenario(_ name: String) throws -> Scenario { try #require(Scenario.all.first { $0.name == name }) }
        let known = try #require(Scenario.adviceCases.first { $0.rule == rule })
        #expect(try scenario(known.right).expected?.advice == rule)
        let near = try #require(try scenario(known.near).expected?.advice)
        #expect(near != rule)
        // A stall of the twin is a false alarm.
        #expect(try scenario("cured-\(rule)").expected == nil)
        #expect(Scenario.adviceCases.count == AdviceRule.all.count)
    }

    @Test func theListHasALinePerScenario() {
        let lines = Scenario.list(Scenario.all).split(separator: "\n")
        #expect(lines.count == Scenario.all.count)
        for (line, scenario) in zip(lines, Scenario.all) { #expect(line.hasPrefix(scenario.name + " ")) }
        #expect(lines.contains { $0.hasSuffix("(reported in spinTheCPU(for:))") })
        #expect(lines.contains { $0.hasSuffix("(no report)") })
    }
}
