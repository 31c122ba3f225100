import Testing

@testable import StallWatchCLI

/// The privileges for which the dynamic linker ignores LD_PRELOAD.
@Suite struct ProgramPrivilegesTests {
    @Test(
        arguments: [
            (ProgramPrivileges(), 1_000, nil), (ProgramPrivileges(user: 1_000, group: 1_000), 1_000, nil),
            (ProgramPrivileges(user: 0), 1_000, "changes the user (set-user-ID)"),
            (ProgramPrivileges(group: 42), 1_000, "changes the group (set-group-ID)"),
            (ProgramPrivileges(hasCapabilities: true), 1_000, "gains capabilities (setcap)"),
            (ProgramPrivileges(hasCapabilities: true), 0, nil), (ProgramPrivileges(user: 0, group: 0), 0, nil),
        ] as [(ProgramPrivileges, UInt32, String?)])
    func `a gain of privileges is a reason`(privileges: ProgramPrivileges, id: UInt32, reason: String?) {
        #expect(privileges.reason(user: id, group: id) == reason)
    }
}
