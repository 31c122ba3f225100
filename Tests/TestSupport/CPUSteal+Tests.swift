package import LinuxSupport
import Testing

extension CPUSteal {
    /// Judges by the clock: what fails in `body` is a known issue, if too much was stolen since this was read.
    ///
    /// What is late then is late for a reason that no program in the machine can see or mend. For a test that has other
    /// expectations too, which hold whatever the host does. Where all of them are of the clock there is
    /// ``RepeatedWhileCPUIsStolen``.
    package func excuses(_ body: () -> Void) {
        withKnownIssue("the host gave this machine's CPUs to others", isIntermittent: true) {
            body()
        } when: {
            isDisturbing
        }
    }
}
