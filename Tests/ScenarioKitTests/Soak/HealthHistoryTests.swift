import Foundation
import Glibc
import Testing

@testable import stallwatch_scenarios

@Suite struct ProcessHealthTests {
    @Test func everyReadingIsJudged() throws {
        let margin = HealthGrowth.margin
        func problems(beyond excess: Int) throws -> Int {
            // Of readings that fluctuate.
            let readings = (0..<40).map { index in
                ProcessHealth.some.with {
                    let grown = index < 20 ? 0 : 1
                    $0.memory += index % 3 * 40000 + grown * (margin.memory + excess)
                    $0.descriptors += index % 2 + grown * (margin.descriptors + excess)
                    $0.threads += index % 4 * 60 + grown * (margin.threads + excess)
                    $0.mappings += index % 5 * 100 + grown * (margin.mappings + excess)
                }
            }
            return try growth(readings).problems.count
        }
        #expect(try problems(beyond: 0) == 0)
        #expect(try problems(beyond: 1) == 4)
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
