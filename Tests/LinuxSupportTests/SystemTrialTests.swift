import Testing

@testable import LinuxSupport

@Suite struct SystemTrialTests {
    /// A reference for the trials: what the calls do in this process.
    @Test func `own memory can be read`() {
        #expect(SystemTrial.readMemory.refusal() == nil)
        #expect(SystemTrial.signal.refusal() == nil)
    }
}
