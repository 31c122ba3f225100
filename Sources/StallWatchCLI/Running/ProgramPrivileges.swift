import Glibc
import LinuxSupport

/// The privileges that a program gains when it is started, for which the dynamic linker ignores LD_PRELOAD (ld.so(8)).
struct ProgramPrivileges: Equatable {
    /// The user and the group that the program becomes; `nil` if it stays the caller's.
    var user: UInt32?
    var group: UInt32?
    var hasCapabilities = false

    /// Reads a program's privileges.
    init(path: String) {
        guard let status = FileStatus(path: path) else { return }
        if status.permissions & UInt32(S_ISUID) != 0 { user = status.owner }
        // Without the permission to execute, the bit meant mandatory locking (stat(2)).
        let group = UInt32(S_ISGID | S_IXGRP)
        if status.permissions & group == group { self.group = status.group }
        hasCapabilities = hasFileCapabilities(path)
    }

    init(user: UInt32? = nil, group: UInt32? = nil, hasCapabilities: Bool = false) {
        (self.user, self.group, self.hasCapabilities) = (user, group, hasCapabilities)
    }

    /// Why the dynamic linker does not load the monitor into the program; `nil` if it does.
    var reasonAgainstPreload: String? { reason(user: getuid(), group: getgid()) }

    /// Returns why the dynamic linker does not load the monitor for a user; `nil` if it does.
    func reason(user: UInt32, group: UInt32) -> String? {
        if let new = self.user, new != user { return "changes the user (set-user-ID)" }
        if let new = self.group, new != group { return "changes the group (set-group-ID)" }
        // Root has all capabilities already (security/commoncap.c, cap_bprm_creds_from_file).
        return hasCapabilities && user != 0 ? "gains capabilities (setcap)" : nil
    }
}
