import Foundation
import StallReports
import TestSupport
import Testing

/// Contexts that need a process of their own.
@Suite(.serialized) struct ContextHostTests {
    @Test func `the workers of a starved pool have their contexts`() throws {
        let directory = try TemporaryDirectory()
        #expect(try TestHost(["contexts", directory.path, "pool"]).finish().isEmpty)
        let report = try #require(try directory.reports().first { $0.kind == .starvation })
        let workers = (report.samples.first?.workers ?? []).flatMap(\.threads)
        let contexts = workers.compactMap(\.context).filter { $0.label != nil }
        #expect(!contexts.isEmpty)
        for context in contexts {
            // Each worker has its own: label, attribute and task belong together.
            let number = try #require(context.attributes?["number"])
            #expect(context.label == "GET /\(number)" && context.taskName == "request-\(number)")
        }
        #expect(Set(contexts.compactMap(\.taskID)).count == contexts.count)
        #expect(report.context.map(contexts.contains) == true)
        let result = try Repository.validateReports(directory.path)
        #expect(result.status == 0, "\(result.text)")
    }

    /// The library is there from the start, or loaded later, with thread-local storage that is not allocated yet.
    @Test(arguments: [true, false])
    func `a span of OpenTelemetry is read when it is valid`(isPreloaded: Bool) throws {
        let directory = try TemporaryDirectory()
        let scratch = try TemporaryDirectory()
        let library = try Preload.span.make(in: scratch)
        let host = try TestHost(
            ["contexts", directory.path, "span"] + (isPreloaded ? [] : [library]),
            wrapper: isPreloaded ? ["/usr/bin/env", "LD_PRELOAD=\(library)"] : [])
        #expect(host.finish().isEmpty && host.process.terminationStatus == 0)
        let contexts = try directory.reports().sorted { $0.startedAt < $1.startedAt }.map(\.context)
        try #require(contexts.count == 8)
        let span = StallReport.Context(
            traceID: "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", spanID: "b0b1b2b3b4b5b6b7")
        var inScope = span
        inScope.label = "kind 1"
        #expect(contexts[0] == nil && contexts[1] == StallReport.Context(label: "kind 0"))
        #expect(contexts[2] == span && contexts[3] == inScope)
        #expect(contexts[4] == nil && contexts[5] == StallReport.Context(label: "kind 2"))
        #expect(contexts[6] == nil && contexts[7] == StallReport.Context(label: "kind 3"))
    }
}
