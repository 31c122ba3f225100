import Foundation
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct CapabilityProbeTests {
    private func probe(
        _ symbolication: StallMonitor.Symbolication = .lines, unflushed: [String]? = []
    ) -> CapabilityProbe {
        CapabilityProbe(symbolication: symbolication, unflushed: unflushed)
    }

    @Test func `every feature is tried or says why not`() {
        let capabilities = probe().capabilities(loadsLibrary: true)
        #expect(capabilities.features.map(\.name) == Capabilities.FeatureName.known)
        for feature in capabilities.features {
            #expect(feature.state != .notTried || feature.name == .signal, "\(feature)")
        }
        #expect(capabilities[.read]?.state == .works)
        #expect(capabilities[.status]?.state == .works)
        #expect(capabilities.environment.pid == getpid())
    }

    @Test func `flushing is what the stores have found`() {
        #expect(probe(unflushed: nil).capabilities(loadsLibrary: false)[.flush]?.state == .notTried)
        #expect(probe(unflushed: []).capabilities(loadsLibrary: false)[.flush]?.state == .works)
        let refused = probe(unflushed: ["/a: fsync: no", "/b: fsync: no"]).capabilities(loadsLibrary: false)[.flush]
        #expect(refused?.state == .missing)
        #expect(refused?.detail == "/a: fsync: no, /b: fsync: no")
    }

    @Test func `without symbolication nothing is lost by a missing libdw`() {
        let capabilities = probe(.none).capabilities(loadsLibrary: true)
        for name in [Capabilities.FeatureName.libdw, .symbols, .debugInformation] {
            #expect(capabilities[name]?.state == .notTried)
        }
    }

    @Test(arguments: [
        (CaptureProbe.Attempt.works, Capabilities.Outcome.works()), (.failed("no"), .missing("no")),
        (.notTried("why"), .notTried("why")),
    ])
    func `an attempt is an outcome`(attempt: CaptureProbe.Attempt, outcome: Capabilities.Outcome) {
        #expect(Capabilities.Outcome(attempt) == outcome)
    }

    @Test func `capabilities are readable before, during and after a run`() throws {
        let monitor = try StallMonitor(.init(reports: .none))
        let before = monitor.capabilities
        try monitor.start()
        #expect(monitor.capabilities.features.map(\.state) == before.features.map(\.state))
        monitor.stop()
        #expect(monitor.capabilities.features.map(\.state) == before.features.map(\.state))
        #expect(before[.flush]?.state == .notTried)
    }
}
