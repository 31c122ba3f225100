import Testing

@testable import StackCapture

@Suite struct CaptureProbeTests {
    @Test func `the result agrees with the engine's own probe`() throws {
        let mayUsePtrace = try CUnwindEngine().probeStop()
        let probe = CaptureProbe.result(mayUsePtrace: nil)
        #expect(probe.read == .works)
        #expect((probe.ptrace == .works) == mayUsePtrace)
        #expect((probe.signal == .notTried("not used where ptrace works")) == mayUsePtrace)
        #expect(probe.memory != nil)
        #expect(probe.perf != .notTried("not tried"))
    }

    @Test func `the methods are tried once`() {
        #expect(CaptureProbe.result(mayUsePtrace: nil) == CaptureProbe.result(mayUsePtrace: nil))
    }
}
