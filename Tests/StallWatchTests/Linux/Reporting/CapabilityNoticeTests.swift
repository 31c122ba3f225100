import Foundation
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

@Suite struct UnlinkedFileTests {
    private let capabilities = Capabilities(.init(pid: 4700), [.read: .works()])

    /// The descriptors of this process that are open for a file in `directory`.
    private func open(in directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").map { "/proc/self/fd/\($0)" }.filter {
            readLink($0)?.hasPrefix("\(directory.path)/.\(Capabilities.fileName).") ?? false
        }
    }

    @Test func `the file has no name and lasts as long as its owner`() throws {
        let directory = try TemporaryDirectory()
        var file = UnlinkedFile(
            capabilities.jsonData(), named: Capabilities.fileName, in: directory.path)
        #expect(file != nil)
        #expect(directory.names.isEmpty)
        let paths = try open(in: directory)
        #expect(paths.count == 1)
        let bytes = try #require(paths.first.flatMap { AtomicFile.read($0, limit: 1 << 20) })
        #expect(Capabilities(jsonData: bytes) == capabilities)
        file = nil
        #expect(try open(in: directory).isEmpty)
    }

    @Test func `an unwritable directory gets no file`() {
        #expect(UnlinkedFile(capabilities.jsonData(), named: Capabilities.fileName, in: "/nowhere") == nil)
    }
}

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
