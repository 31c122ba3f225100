package import LinuxSupport
import Testing

extension CPUSteal {
    /// Records failures of `body` as known issues if the host stole too much CPU time since this reading.
    ///
    /// No program in the virtual machine can prevent such a delay. Use it for the expectations of a test that depend on
    /// the clock; the others hold whatever the host does. If all depend on the clock, use ``RepeatedWhileCPUIsStolen``.
    package func excuses(_ body: () -> Void) {
        withKnownIssue("the host gave this machine's CPUs to others", isIntermittent: true) {
            body()
        } when: {
            isDisturbing
        }
    }
}
