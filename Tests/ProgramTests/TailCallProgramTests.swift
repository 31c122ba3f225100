import Foundation
import TestSupport
import Testing

@testable import StallReports

/// Functions of an optimized program that left no frame, in the reports of their stalls.
@Suite(.serialized, .ownThread, .needsToolchain) struct TailCallProgramTests {
    /// What each stall of `Tests/Support/TailCalls` has on its stack, in their order.
    private struct Expected {
        /// The function that left no frame; `nil` if none did.
        var function: String?
        var culprit: String
        /// Whether the optimizer took the function's declaration away.
        var isFolded = false

        /// A function that waits in a function of C.
        static func waits(_ function: String, isFolded: Bool = false) -> Expected {
            Expected(function: function, culprit: function, isFolded: isFolded)
        }

        /// A function that ends in a call of one that waits, which is the culprit.
        static func dozes(_ function: String?, isFolded: Bool = false) -> Expected {
            Expected(function: function, culprit: "doze(_:)", isFolded: isFolded)
        }
    }

    private static let expected: [Expected] = [
        .waits("nap()"), .waits("waitForEvents()"), .waits("readMessage(_:_:)"), .waits("takeLock(_:)"),
        .waits("countDown(_:_:)"), .dozes("hashPassword(_:)"), .dozes(nil), .dozes("load(_:_:)"),
        Expected(function: nil, culprit: "closure #1 in closure #9 in Program"),
        .waits("specialized retry(_:_:)", isFolded: true), .dozes("Archive.compact()"),
        .dozes("specialized static Archive.vacuum(_:)"), .dozes("importUsers(_:)", isFolded: true),
        .dozes("importGroups(_:)", isFolded: true), .dozes("indexAll<A>(_:_:)", isFolded: true),
        .dozes("searchAll<A>(_:_:)", isFolded: true),
        .waits("restUsers()", isFolded: true), .waits("restGroups()", isFolded: true),
        .dozes("Shelf.checksum.getter", isFolded: true), .dozes(nil), .waits("nap()"), .dozes(nil),
        Expected(function: "openSafe(_:)", culprit: "linger(_:)"), .dozes("exportedHash(_:)"),
    ]

    // The package manager's builds keep frame pointers.
    @Test(arguments: [[], ["-Xcc", "-fno-omit-frame-pointer"]])
    func `the call names the function that left no frame`(frames: [String]) throws {
        let program = try StallingProgram()
        let options = ["-swift-version", "6", "-O", "-wmo", "-g", "-I", "."] + frames
        let sources = Repository.support.appendingPathComponent("TailCalls").path
        let shared = [
            "Tests/ScenarioKit/TailCalls/Vault.swift", "Tests/ScenarioKit/Scenarios/Blockers/TailCalls.swift",
        ].map { Repository.root.appendingPathComponent($0).path }
        let module = options + ["-parse-as-library", "-emit-module"]
        try program.compile(module + ["-emit-object", "-module-name", "TailCalls", shared[0], "-o", "TailCalls.o"])
        try program.compile(
            module + ["-emit-library", "-module-name", "Safe", "\(sources)/Safe.swift", "-o", "libSafe.so"])
        try program.compile(["-O2", "-g", "-c", "\(sources)/caller.c", "-o", "caller.o"], with: "clang")
        // Without merging, which would make one of closures that differ in the function that they call.
        try program.compile(
            options + ["-Xllvm", "-swiftmergefunc-threshold=0", "-module-name", "Program", "\(sources)/main.swift"]
                + [shared[1], "TailCalls.o", "caller.o", "-L", ".", "-lSafe"]
                + ["-Xlinker", "-rpath", "-Xlinker", "$ORIGIN", "-o", "program"])
        // A stall that was over before the watchdog got a CPU has no sample: some run has to show each.
        var reports: [StallReport] = []
        func report(of closure: String) -> StallReport? {
            reports.first { report in
                report.samples.contains { $0.isValid && report.functionNames(of: $0).contains(closure) }
            }
        }
        let closures = Self.expected.indices.map { "closure #\($0 + 1) in Program" }
        for run in 0..<5 where closures.contains(where: { report(of: $0) == nil }) {
            reports += try program.reports(to: "stalls-\(run)")
        }
        for (closure, expected) in zip(closures, Self.expected) {
            let report = try #require(report(of: closure), "no report of \(closure)")
            for sample in report.samples where sample.isValid {
                let stack = (sample.stack.map { report.stacks[$0] } ?? []).map { report.frames[$0] }
                let calls = stack.filter { $0.isTailCall == true }
                let functions: [String] = calls.compactMap(\.function)
                #expect(functions == [expected.function].compactMap(\.self), "\(closure)")
                #expect(calls.allSatisfy { $0.isInApp && ($0.line == nil) == expected.isFolded }, "\(closure)")
            }
            #expect(report.culprit?.function == expected.culprit, "\(closure)")
        }
    }
}
