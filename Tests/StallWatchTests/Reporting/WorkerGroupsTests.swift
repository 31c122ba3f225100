@testable import LinuxSupport
import TestSupport
import Testing

@testable import StackCapture
@testable import StallWatch

/// The groups of workers that explain why a pool starts no work.
@Suite struct WorkerGroupsTests {
    private let app = LoadedImage.stub(path: "/opt/notes/bin/notes", addresses: 0x10000..<0x20000, isExecutable: true)
    private let dispatch = LoadedImage.stub(path: "/usr/lib/libdispatch.so", addresses: 0x40000..<0x50000)
    private let symbolicator = TableSymbolicator(symbols: [
        "libdispatch.so": [0x10: "_dispatch_worker_thread", 0x20: "_dispatch_semaphore_wait_slow"],
        "notes": [0x400: "_dispatch_worker_thread", 0x500: "_dispatch_semaphore_wait_slow"],
    ])

    /// The stack of an idle worker.
    private let idle: [UInt64] = [0x40020, 0x40010]
    /// The stacks of two workers in app code.
    private let saving: [UInt64] = [0x10100, 0x40010]
    private let loading: [UInt64] = [0x10200, 0x40010]
    /// The stack of a thread that is not a worker.
    private let other: [UInt64] = [0x10100, 0x10300]

    /// Returns the groups of threads with these stacks: the stack and the number of threads of each.
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
            WorkerGroups.group(sample, &tables) { WorkerGroups.symbol(of: $0, in: $1, symbolicator) })
        return groups.map { $0.threads.map { Int($0.id) } }
    }

    @Test func workersWithEqualStacksAreAGroup() throws {
        #expect(try groups([saving, loading, loading]) == [[1], [2, 3]])
    }

    @Test func workersAreKnownWhereDispatchIsLinkedIntoTheExecutable() throws {
        let idle: [UInt64] = [0x10500, 0x10400]
        #expect(try groups([idle, idle, other, [0x10100, 0x10400]]) == [[1, 2], [4]])
    }

    @Test func otherThreadsAreLeftOut() throws {
        #expect(try groups([other, saving, other]) == [[2]])
    }

    /// In a stripped executable the names of its functions are missing, and so are libdispatch's if it is linked into it.
    @Test func withoutAKnownWorkerThreadsWithUnnamedFunctionsMayBeWorkers() throws {
        #expect(try groups([[0x40020], other, [0x10100, 0x10300, 0x40020]]) == [[2], [3]])
    }
}
