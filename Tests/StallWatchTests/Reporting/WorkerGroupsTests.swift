@testable import LinuxSupport
import TestSupport
import Testing

@testable import StackCapture
@testable import StallWatch

/// Whose stack explains that a pool starts nothing.
@Suite struct WorkerGroupsTests {
    private let app = LoadedImage.stub(path: "/opt/notes/bin/notes", addresses: 0x10000..<0x20000, isExecutable: true)
    private let dispatch = LoadedImage.stub(path: "/usr/lib/libdispatch.so", addresses: 0x40000..<0x50000)
    private let symbolicator = TableSymbolicator(symbols: [
        "libdispatch.so": [0x10: "_dispatch_worker_thread", 0x20: "_dispatch_semaphore_wait_slow"]
    ])

    /// A worker that has nothing to do.
    private let idle: [UInt64] = [0x40020, 0x40010]
    /// Two that run code of the app.
    private let saving: [UInt64] = [0x10100, 0x40010]
    private let loading: [UInt64] = [0x10200, 0x40010]
    /// A thread that is no worker.
    private let other: [UInt64] = [0x10100, 0x10300]

    /// The stacks of the groups of these threads, and how many threads each has.
    private func groups(_ stacks: [[UInt64]]) throws -> [[Int]] {
        var sample = StallRecord.Sample(
            age: 0, isValid: true, stack: .failure(CaptureError(description: "a pool")),
            images: ImageList([app, dispatch])
        )
        sample.workers = stacks.enumerated().map { index, addresses in
            StallRecord.OtherThread(thread: .init(id: Int32(index + 1), name: nil), stack: .success(.stub(addresses)))
        }
        var tables = ReportTables(inApp: StallMonitor.InApp())
        let groups = try #require(
            WorkerGroups.group(sample, &tables) { WorkerGroups.isInWorkerFunction($0, $1, symbolicator) })
        return groups.map { $0.threads.map { Int($0.id) } }
    }

    @Test func workersWithEqualStacksAreAGroupAndTheLargestIsFirst() throws {
        #expect(try groups([saving, loading, loading]) == [[2, 3], [1]])
    }

    /// The idle workers of other pools are often more, and are nobody's fault.
    @Test func workersInCodeOfTheAppComeBeforeIdleOnes() throws {
        #expect(try groups([idle, idle, idle, saving]) == [[4], [1, 2, 3]])
        #expect(try groups([idle, saving, idle, loading, loading, idle]) == [[4, 5], [2], [1, 3, 6]])
    }

    @Test func otherThreadsAreLeftOut() throws {
        #expect(try groups([other, saving, other]) == [[2]])
    }
}
