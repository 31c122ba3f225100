import Foundation
import TestSupport
import Testing

@testable import StallReports

/// Functions of an optimized program that left no frame, in the reports of their stalls.
@Suite(.needsToolchain) struct TailCallProgramTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

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
        static func pauses(_ function: String?, isFolded: Bool = false) -> Expected {
            Expected(function: function, culprit: "pause(_:)", isFolded: isFolded)
        }
    }

    private static let expected: [Expected] = [
        .waits("nap()"), .waits("waitForEvents()"), .waits("readMessage(_:_:)"), .waits("takeLock(_:)"),
        .waits("countDown(_:_:)"), .pauses("hashPassword(_:)"), .pauses(nil), .pauses("load(_:_:)"),
        Expected(function: nil, culprit: "closure #1 in closure #9 in Program"),
        .waits("specialized retry(_:_:)", isFolded: true), .pauses("Store.compact()"),
        .pauses("specialized static Store.vacuum(_:)"), .pauses("importUsers(_:)", isFolded: true),
        .pauses("importGroups(_:)", isFolded: true), .pauses("indexAll<A>(_:_:)", isFolded: true),
        .pauses("searchAll<A>(_:_:)", isFolded: true),
        .waits("restUsers()", isFolded: true), Expected(function: nil, culprit: "restGroups()"),
        .pauses("Shelf.checksum.getter", isFolded: true), .pauses(nil), .waits("nap()"), .pauses(nil),
    ]

    @Test func `the call names the function that left no frame`() throws {
        let sources = Repository.support.appendingPathComponent("TailCalls").path
        let options = ["-swift-version", "6", "-O", "-wmo", "-g"]
        func compile(_ arguments: [String]) throws {
            try Command(
                program: try #require(Command.find("swiftc")), arguments: options + arguments, directory: directory.path
            ).succeed()
        }
        try compile([
            "-parse-as-library", "-emit-module", "-emit-object", "-module-name", "Vault", "\(sources)/Vault.swift",
            "-o",
            "Vault.o",
        ])
        try compile(["-module-name", "Program", "\(sources)/main.swift", "Vault.o", "-I", ".", "-o", "program"])
        try Tool.run([
            "run", "--quiet", "--threshold", "50ms", "--output", directory.path("stalls"), "--",
            directory.path("program"),
        ])
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("stalls"))
        let reports = try names.filter { StallReport.isFileName($0) }.map { name in
            let data = try #require(FileManager.default.contents(atPath: directory.path("stalls/\(name)")))
            return try StallReport(jsonData: [UInt8](data))
        }
        for (number, expected) in Self.expected.enumerated() {
            let closure = "closure #\(number + 1) in Program"
            let found = reports.first { report in
                report.samples.contains { $0.isValid && report.functionNames(of: $0).contains(closure) }
            }
            let report = try #require(found, "\(closure)")
            for sample in report.samples where sample.isValid {
                let stack = (sample.stack.map { report.stacks[$0] } ?? []).map { report.frames[$0] }
                let calls = stack.filter { $0.isTailCall == true }
                let functions: [String] = calls.compactMap(\.function)
                #expect(functions == [expected.function].compactMap(\.self), "\(closure)")
                #expect(calls.allSatisfy { $0.isInApp && ($0.line == nil) == expected.isFolded }, "\(closure)")
            }
            #expect(report.culprit?.function == expected.culprit)
        }
    }
}
