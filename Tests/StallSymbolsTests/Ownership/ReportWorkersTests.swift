import Testing
import TestSupport

@testable import StallReports
@testable import StallSymbols

/// The workers of a pool in a named report.
@Suite struct ReportWorkersTests {
    private static let frames = [
        frame("_dispatch_worker_thread", isInApp: false), frame("_dispatch_semaphore_wait_slow", isInApp: false),
        frame("save", isInApp: true), frame("load", isInApp: true), frame(nil, isInApp: true),
        frame("_dispatch_root_queue_drain", isInApp: true),
    ]
    private let idle = [1, 0], saving = [2, 0], loading = [3, 0], main = [2], unnamed = [4]

    private static func frame(_ symbol: String?, isInApp: Bool) -> StallReport.Frame {
        StallReport.Frame(image: 0, offset: "0x1", function: symbol, symbol: symbol, isInApp: isInApp, kind: .code)
    }

    /// Returns the threads of each group after sorting, when thread 1, 2 and so on have these stacks.
    private func sorted(_ stacks: [(frames: [Int], threads: Int)]) throws -> (groups: [Int], stack: Int?) {
        var report = try StallReport.literal()
        report.frames = Self.frames
        report.stacks = stacks.map(\.frames)
        report.samples = [report.samples[0]]
        report.samples[0].workers = stacks.indices.map { stack in
            StallReport.WorkerGroup(
                stack: stack, threads: (0..<stacks[stack].threads).map { .init(id: Int32($0 + 1), name: nil) })
        }
        report.sortWorkers()
        return ((report.samples[0].workers ?? []).compactMap(\.stack), report.samples[0].stack)
    }

    @Test func `the largest group of busy workers is first`() throws {
        let result = try sorted([(saving, 1), (idle, 5), (loading, 2)])
        #expect(result.groups == [2, 0, 1])
        #expect(result.stack == 2)
    }

    @Test func `a worker of a linked library is not busy`() throws {
        #expect(try sorted([([1, 5], 5), (loading, 1)]).groups == [1, 0])
    }

    @Test func `threads with other names than workers are left out`() throws {
        #expect(try sorted([(main, 3), (unnamed, 2), (saving, 1)]).groups == [2])
    }

    @Test func `without any name every thread may be a worker`() throws {
        #expect(try sorted([(unnamed, 2), (main, 3)]).groups == [1, 0])
    }
}
