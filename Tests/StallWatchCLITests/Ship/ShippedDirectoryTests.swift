import LinuxSupport
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ShipQueueTests {
    @Test func eachReportWaitsOnce() {
        var queue = ShipQueue()
        queue.add(["a", "b", "c"]) { $0 == "b" }
        queue.add(["a", "c", "d"]) { _ in false }
        #expect(queue.count == 3)
        var order: [String] = []
        while let name = queue.next {
            order.append(name)
            queue.removeNext()
        }
        #expect(order == ["a", "c", "d"])
        // It may come again: an ongoing stall that has ended.
        queue.add(["a"]) { _ in false }
        #expect(queue.next == "a")
    }

    @Test func orderIsKeptOverManyReports() {
        var queue = ShipQueue()
        var taken: [String] = []
        for round in 0..<50 {
            queue.add((0..<20).map { "\(round * 20 + $0)" }) { _ in false }
            for _ in 0..<15 {
                if let name = queue.next { taken.append(name) }
                queue.removeNext()
            }
        }
        while let name = queue.next {
            taken.append(name)
            queue.removeNext()
        }
        #expect(taken == (0..<1_000).map(String.init))
    }

    @Test func theBatchShrinksToOneAndGrowsAgain() {
        var queue = ShipQueue()
        #expect(queue.limit == 256)
        queue.shrink(from: 100)
        #expect(queue.limit == 50)
        for _ in 0..<10 { queue.shrink(from: queue.limit) }
        #expect(queue.limit == 1)
        for _ in 0..<10 { queue.grow() }
        #expect(queue.limit == 256)
    }
}

@Suite struct ShipCheckpointTests {
    @Test func whatIsDoneSurvivesARestart() throws {
        let scratch = try TemporaryDirectory()
        let folder = scratch.path("state")
        do {
            let checkpoint = try ShipCheckpoint(folder: folder)
            #expect(checkpoint.done.isEmpty)
            #expect(checkpoint.add(["a", "b"]) == nil)
            #expect(checkpoint.add(["c"]) == nil)
        }
        #expect(try ShipCheckpoint(folder: folder).done == ["a", "b", "c"])
    }

    @Test func aLineThatBreaksOffCountsForNothing() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write("state/done", "stall-1.json\nstall-2.js")
        do {
            let checkpoint = try ShipCheckpoint(folder: scratch.path("state"))
            #expect(checkpoint.done == ["stall-1.json"])
            #expect(checkpoint.add(["stall-3.json"]) == nil)
        }
        #expect(
            try ShipCheckpoint(folder: scratch.path("state")).done == ["stall-1.json", "stall-2.js", "stall-3.json"])
    }

    @Test func onlyOneProcessAtATime() throws {
        let scratch = try TemporaryDirectory()
        let first = try ShipCheckpoint(folder: scratch.path("state"))
        let error = #expect(throws: CommandFailure.self) { try ShipCheckpoint(folder: scratch.path("state")) }
        #expect(error?.sentence.contains("already follows") == true)
        withExtendedLifetime(first) {}
    }

    @Test func namesOfFilesThatAreGoneAreDropped() throws {
        let scratch = try TemporaryDirectory()
        let checkpoint = try ShipCheckpoint(folder: scratch.path("state"))
        #expect(checkpoint.add((0..<10_500).map(String.init)) == nil)
        checkpoint.compact { Int($0).map { $0 < 100 } ?? false }
        #expect(checkpoint.done.count == 100)
        #expect(checkpoint.add(["new"]) == nil)
        let size = FileStatus(path: scratch.path("state/done"))?.size
        #expect(size == 290 + 4)
    }

    @Test func anUnwritableFolderIsNamed() throws {
        let scratch = try TemporaryDirectory()
        let file = try scratch.write("file", "")
        let error = #expect(throws: CommandFailure.self) { try ShipCheckpoint(folder: file + "/state") }
        #expect(error?.sentence.contains("--state") == true)
    }
}

@Suite struct SetAsideFolderTests {
    @Test func aReportIsKeptWithTheReason() throws {
        let scratch = try TemporaryDirectory()
        let report = ReportFixture(number: 1)
        try scratch.write([report], in: "stalls/")
        var folder = SetAsideFolder(path: scratch.path("rejected"))
        #expect(folder.add(report.fileName, from: scratch.path("stalls"), reason: "HTTP status 400") == nil)
        #expect(scratch.names(in: "rejected") == [report.fileName, report.fileName + ".reason"])
        let reason = AtomicFile.read(scratch.path("rejected/\(report.fileName).reason"), limit: 1_000) ?? []
        #expect(String(decoding: reason, as: UTF8.self).hasSuffix("Z HTTP status 400\n"))
        // Again, as after a crash.
        #expect(folder.add(report.fileName, from: scratch.path("stalls"), reason: "HTTP status 400") == nil)
        #expect(folder.add("stall-gone.json", from: scratch.path("stalls"), reason: "x") != nil)
    }
}

extension TemporaryDirectory {
    /// The sorted names in a folder of the directory.
    fileprivate func names(in folder: String) -> [String] {
        (directoryEntries(path(folder)) ?? []).map(\.name).filter { !$0.hasPrefix(".") }.sorted()
    }
}
