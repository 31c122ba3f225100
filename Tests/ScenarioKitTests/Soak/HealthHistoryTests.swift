import Foundation
import Glibc
import Testing

@testable import ScenarioKit
@testable import stallwatch_scenarios

@Suite struct ProcessHealthTests {
    @Test func thisProcessHasPositiveReadings() throws {
        let health = try ProcessHealth.now()
        #expect(health.memory > 100 && health.resident > health.memory)
        #expect(health.descriptors > 2 && health.threads > 0 && health.mappings > 10)
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

@Suite struct ChaosTests {
    @Test(arguments: ChaosKind.allCases.filter { $0 != .clock })
    func everyKindOfActionSucceeds(kind: ChaosKind) {
        #expect(kind.act() == .done)
    }

    /// A wait until a moment of the wall clock must not overlap with a change of the clock.
    @Test func theScenariosWithLessChaosExist() {
        let names = Set(Scenario.all.map(\.name))
        #expect(Scenario.endingByTheWallClock.isSubset(of: names))
        #expect(Scenario.shortOfCPU.isSubset(of: names))
        #expect(Scenario.all.filter { $0.leftOut == [.clock] }.count == Scenario.endingByTheWallClock.count)
    }

    @Test func readOnlyFileMappingsAreFound() {
        let maps = """
            55d0c8a00000-55d0c8a21000 r-xp 00000000 08:02 173521                     /opt/app name
            55d0c8a21000-55d0c8a22000 rw-p 00021000 08:02 173521                     /opt/app name
            7f01c2000000-7f01c2021000 rw-p 00000000 00:00 0
            7ffd1d5f2000-7ffd1d5f4000 r-xp 00000000 00:00 0                          [vdso]
            7f01c3000000-7f01c3001000 r--p 00000000 08:02 9                          /usr/lib/libc.so.6
            """
        #expect(
            ColdStart.fileMappings(in: maps) == [
                0x55d0_c8a0_0000..<0x55d0_c8a2_1000, 0x7f01_c300_0000..<0x7f01_c300_1000,
            ]
        )
    }
}
