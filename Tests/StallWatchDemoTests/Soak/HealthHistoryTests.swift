import Foundation
import Glibc
import Testing

@testable import stallwatch_demo

@Suite struct ProcessHealthTests {
    private static let status = """
        Name:\tstallwatch-demo
        VmRSS:\t   69812 kB
        RssFile:\t   48308 kB
        Threads:\t17
        """

    @Test func theStatusFileIsRead() {
        let health = ProcessHealth(status: Self.status, memory: 21504, descriptors: 12, mappings: 400)
        #expect(health == .init(memory: 21504, resident: 69812, descriptors: 12, threads: 17, mappings: 400))
    }

    @Test(arguments: ["VmRSS", "Threads"])
    func aMissingLineIsNotZero(name: String) {
        let status = Self.status.replacing(name, with: "Other")
        #expect(ProcessHealth(status: status, memory: 0, descriptors: 0, mappings: 0) == nil)
    }

    @Test func thisProcessHasPositiveReadings() throws {
        let health = try ProcessHealth.now()
        #expect(health.memory > 100 && health.resident > health.memory)
        #expect(health.descriptors > 2 && health.threads > 0 && health.mappings > 10)
    }

    /// Growth needs a warm process and several readings.
    @Test func tooFewReadingsGiveNoGrowth() {
        var history = HealthHistory()
        for _ in 0..<20 { history.add(.some) }
        #expect(history.growth == nil)
        history.warmUpIsOver()
        for _ in 0..<5 { history.add(.some) }
        #expect(history.growth == nil)
        history.add(.some)
        #expect(history.growth == .init(memory: 0, descriptors: 0, threads: 0, mappings: 0))
    }

    @Test func fluctuationIsNoGrowth() throws {
        let readings = (0..<40).map { index in
            ProcessHealth.some.with {
                $0.memory += index % 3 * 40000
                $0.threads += index % 4 * 60
                $0.descriptors += index % 2
                $0.mappings += index % 5 * 100
            }
        }
        #expect(try growth(readings).problems == [])
    }

    @Test func descriptorsThatStayOpenAreALeak() throws {
        let readings = (0..<40).map { index in ProcessHealth.some.with { $0.descriptors += index / 30 + index % 2 } }
        // The additional descriptor exists for less than the later half, so the least of that half has not grown.
        #expect(try growth(readings).problems == [])
        let leaking = (0..<40).map { index in ProcessHealth.some.with { $0.descriptors += index / 4 + index % 2 } }
        #expect(try growth(leaking).descriptors == 5)
        #expect(try growth(leaking).problems == ["5 file descriptors more than before, where 4 may be"])
    }

    @Test func everyReadingIsJudged() throws {
        let margin = HealthGrowth.margin
        let readings = [ProcessHealth](repeating: .some, count: 10)
        let grown = readings.map { reading in
            reading.with {
                $0.memory += margin.memory + 1
                $0.descriptors += margin.descriptors + 1
                $0.threads += margin.threads + 1
                $0.mappings += margin.mappings + 1
            }
        }
        #expect(try growth(readings + grown).problems.count == 4)
        let allowed = readings.map { reading in
            reading.with {
                $0.memory += margin.memory
                $0.descriptors += margin.descriptors
                $0.threads += margin.threads
                $0.mappings += margin.mappings
            }
        }
        #expect(try growth(readings + allowed).problems == [])
    }

    private func growth(_ readings: [ProcessHealth]) throws -> HealthGrowth {
        var history = HealthHistory()
        history.warmUpIsOver()
        for reading in readings { history.add(reading) }
        return try #require(history.growth)
    }
}

extension ProcessHealth {
    fileprivate static let some = ProcessHealth(
        memory: 20000, resident: 70000, descriptors: 12, threads: 17, mappings: 400
    )

    fileprivate func with(_ change: (inout ProcessHealth) -> Void) -> ProcessHealth {
        var changed = self
        change(&changed)
        return changed
    }
}
