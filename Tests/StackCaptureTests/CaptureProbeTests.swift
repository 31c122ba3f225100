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

    @Test func `each method is a feature`() {
        let probe = CaptureProbe.result(mayUsePtrace: nil)
        let features = probe.features(
            works: { _ in "works" }, missing: { "missing: \($0)" }, notTried: { "not tried: \($0)" })
        #expect(Set(features.keys) == ["read", "ptrace", "signal", "perf", "processVMReadv", "libunwind"])
        #expect(features["read"] == "works")
        if probe.ptrace == .works { #expect(features["signal"] == "not tried: not used where ptrace works") }
    }

    @Test func `the number of disagreements follows the library's name`() {
        #expect(CaptureProbe.detail(of: "libunwind 1.6.2", 0) == "libunwind 1.6.2")
        let text = CaptureProbe.detail(of: "libunwind 1.6.2", 3)
        #expect(text == "libunwind 1.6.2, which differs from the built-in unwinder at 3 steps")
    }
}
