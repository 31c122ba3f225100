import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct StatsTests {
    private let scratch = TemporaryDirectory.ofTest()
    private let first = """
        {
          "stalls": 3, "suppressed": { "repeated": 2, "debugger": 0 }, "reportsDropped": 0, "reportsLost": 1,
          "reportsRemoved": 0, "reportsRecovered": 0, "failedWrites": 1, "lastWriteError": "no space",
          "loops": [
            { "label": "main", "watchedSeconds": 1800, "turns": 100, "busySeconds": 18, "stalls": 3, "stallSeconds": 1.5,
              "utilization": 0.01,
              "thresholdMilliseconds": 120,
              "lateTimers": 2, "longestTimerDelayMilliseconds": 640,
              "latency": [ { "belowMicroseconds": 1000, "turns": 98 }, { "belowMicroseconds": 500000, "turns": 2 } ] }
          ]
        }
        """
    private let second = """
        {
          "stalls": 0, "missed": 2, "unwatchedOperations": 5, "suppressed": { "repeated": 1 },
          "loops": [
            { "label": "main", "watchedSeconds": 1800, "turns": 100, "busySeconds": 18, "stalls": 1, "stallSeconds": 0.5,
              "latency": [ { "belowMicroseconds": 2000, "turns": 100 } ] },
            { "label": "idle", "watchedSeconds": 60, "turns": 0, "busySeconds": 0, "stalls": 0, "stallSeconds": 0, "latency": [] }
          ]
        }
        """

    @Test func filesAreAddedUpByLoop() throws {
        try scratch.write("a/first.json", first)
        try scratch.write("a/other.json", "{\"colour\": 1}")
        try scratch.write("second", second)
        let result = try Tool.run(["stats", "a", "second"], in: scratch)
        #expect(
            result.output == """
                loop    watched  turns   busy     p50     p99       max  stalls  per hour  stalled
                idle  1 min 0 s      0      -       -       -         -       0      0.00     0 ms
                main  1 h 0 min    200  1.0 %  < 2 ms  < 2 ms  < 500 ms       4      4.00   2.00 s

                turns of main  count
                       < 1 ms     98  ███████████████████████████████████████
                       < 2 ms    100  ████████████████████████████████████████
                       < 4 ms      0
                       < 8 ms      0
                      < 17 ms      0
                      < 34 ms      0
                      < 67 ms      0
                     < 134 ms      0
                     < 268 ms      0
                     < 537 ms      2  █
                Threshold: 120 ms

                3 stalls in 2 files; suppressed: 3 repeated.
                Late timers of main: 2, by up to 640 ms
                Stalls that were over when the watchdog looked: 2
                Reports that a sink missed: 1
                Writes that failed: 1
                Operations that were not watched: 5
                The last write that failed: no space

                """
        )
        #expect(result.status == 0 && result.errors == "", "\(result)")
    }

    @Test func jsonHasTheSame() throws {
        let path = try scratch.write("first.json", first)
        let result = try Tool.run(["stats", "--json", path])
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        let loops = try #require(object?["loops"] as? [[String: Any]])
        #expect(loops.count == 1)
        #expect(loops[0]["p50Milliseconds"] as? Double == 1)
        #expect(loops[0]["p99Milliseconds"] as? Double == 500)
        #expect(loops[0]["stalls"] as? Int == 3)
        #expect(loops[0]["thresholdMilliseconds"] as? Double == 120)
        #expect(loops[0]["stallsPerHour"] as? Double == 6)
        #expect((object?["suppressed"] as? [String: Int])?["repeated"] == 2)
        #expect(object?["files"] as? Int == 1)
    }

    @Test(arguments: ["", "[]", "{}", "{\"loops\": []}", "{\"loops\": [], \"suppressed\": {\"x\": -1}}", "\u{0}\u{1}"])
    func otherFilesThanStatisticsAreRefused(text: String) throws {
        try scratch.write("file", text)
        let result = try Tool.run(["stats", "file"], in: scratch)
        #expect(result.status == 65 && result.errors == "Error: file: this is not a statistics file.\n", "\(result)")
    }

    @Test func `the sum of damaged counts may be any number`() throws {
        let buckets = Array(repeating: "{ \"turns\": 9007199254740991 }", count: 2_048) + ["{ \"turns\": 1500 }"]
        let loop = "\"label\": \"main\", \"watchedSeconds\": 10, \"latency\": [ \(buckets.joined(separator: ", ")) ]"
        try scratch.write("file", "{ \"suppressed\": {}, \"loops\": [ { \(loop) } ] }")
        #expect(try Tool.run(["stats", "file"], in: scratch).status == 0)
    }

    @Test func aDirectoryWithoutStatistics() throws {
        try scratch.write([ReportFixture()])
        let result = try Tool.run(["stats", "."], in: scratch)
        #expect(
            result.errors
                == "Error: No statistics found. Name the file of the configuration's output .statistics(path).\n"
        )
        #expect(result.status == 1)
    }
}
