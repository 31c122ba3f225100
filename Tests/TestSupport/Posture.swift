import Foundation
import Glibc
package import StallReports

/// The restrictions under which a system runs a program, such as a container's; they are set up with a preloaded
/// library, with namespaces and with another user.
package struct Posture: Sendable {
    /// A part of a report that a posture may cost.
    package enum Part: String, Sendable {
        /// The culprit, because the thread can be neither read nor stopped.
        case function
        /// The cause: it may be `unknown`.
        case cause
        /// The lock's kind and owner.
        case lock
    }

    /// What the program sees of the machine.
    package enum Machine: Sendable {
        case whole
        /// No file system can be written, except for the working directory.
        case readOnly
        /// /proc is mounted with `hidepid=2`.
        case hiddenProcesses
        /// /proc is the one of the outer PID namespace.
        case foreignProc
    }

    /// What the program does to itself once its monitor has started.
    package enum AfterStart: String, Sendable {
        /// It gives up root's rights, as a server does that has opened its port.
        case dropUser
        /// It closes the listening socket of the monitor's control thread.
        case closeListener
    }

    package var name: String
    /// `nil`: nothing.
    package var afterStart: AfterStart?
    /// System calls that fail, with the error number.
    package var refusedCalls: [String: Int32] = [:]
    /// Files of a thread under /proc that are missing.
    package var missingFiles: [String] = []
    package var isDumpable = true
    package var isUnprivileged = false
    package var machine = Machine.whole
    package var limits: [String] = []
    /// The scope of Yama; `nil` for the machine's.
    package var yamaScope: Int?
    /// What reports may lack, by the name of the stall.
    package var mayLack: [String: Set<Part>] = [:]

    package init(_ name: String) { self.name = name }
}

extension Posture {
    /// Calls that a container's filter refuses, in either way, where the monitor has another way.
    ///
    /// It does not call perf_event_open(2) under any filter. That only process_vm_readv(2) is refused, with either
    /// error, is a check of the engine.
    package static let filtered: [Posture] = [
        (["ptrace"], EPERM), (["process_vm_readv", "ptrace"], ENOSYS), (["fsync", "fdatasync"], EPERM),
    ].map { calls, error in
        var posture = Posture("no \(calls.joined(separator: ", ")): \(error == EPERM ? "EPERM" : "ENOSYS")")
        for call in calls { posture.refusedCalls[call] = error }
        return posture
    }

    /// An empty file counts as a missing one (`ThreadProbeTests`).
    ///
    /// `stack` is missing together with others, and for each user but root.
    package static let withoutFile: [Posture] = ["syscall", "wchan", "schedstat", "status"].map { file in
        var posture = Posture("\(file) missing")
        posture.missingFiles = [file]
        // A thread in epoll_wait(2) may not be stopped, and cannot be read without the file.
        if file == "syscall" { posture.mayLack = ["epoll": [.function]] }
        return posture
    }

    package static let none = Posture("none")

    /// The files that gVisor lacks; nothing says which call a blocked thread is in, so it can be neither read nor
    /// stopped.
    package static let sandboxed: Posture = {
        var posture = Posture("gVisor's files")
        posture.missingFiles = ["syscall", "wchan", "schedstat", "stack"]
        for stall in ["sleep", "pipe", "child", "epoll"] { posture.mayLack[stall] = [.function, .cause] }
        for stall in ["lock", "semaphore"] { posture.mayLack[stall] = [.function, .cause, .lock] }
        return posture
    }()

    /// The /proc of another PID namespace, which shows no thread under its id; only the thread's CPU clock shows
    /// whether it runs: a blocked one can be neither read nor stopped.
    package static let foreignProc: Posture = {
        var posture = sandboxed
        posture.name = "another PID namespace's /proc"
        (posture.missingFiles, posture.machine) = ([], .foreignProc)
        posture.mayLack["paging"] = [.function, .cause]
        // Without a CPU the thread looks like a blocked one.
        posture.mayLack["cpu"] = [.cause]
        return posture
    }()

    package static let hiddenProcesses: Posture = {
        var posture = Posture("unprivileged user, hidepid=2")
        (posture.isUnprivileged, posture.machine) = (true, .hiddenProcesses)
        return posture
    }()

    /// A process that is not dumpable cannot be stopped by ptrace, and its threads' `syscall` is root's: a blocked thread
    /// has no stack.
    package static let undumpable: Posture = {
        var posture = Posture("unprivileged user, not dumpable")
        (posture.isUnprivileged, posture.isDumpable) = (true, false)
        for stall in ["sleep", "pipe", "child", "epoll"] { posture.mayLack[stall] = [.function] }
        for stall in ["lock", "semaphore"] { posture.mayLack[stall] = [.function, .lock] }
        return posture
    }()

    /// Limits that the program keeps without a monitor, and would not keep with a careless one.
    package static let limited: [Posture] = [
        ("310 MB of addresses", "--as=310000000"), ("32 descriptors", "--nofile=32"),
    ].map { name, option in
        var posture = Posture(name)
        posture.limits = [option]
        return posture
    }

    /// The user that a server becomes after its start.
    ///
    /// A running thread can no longer be stopped by ptrace. The files of the loop's thread are open, those that would show a
    /// lock's owner are root's.
    package static let dropped: Posture = {
        var posture = Posture("privileges dropped")
        posture.afterStart = .dropUser
        for stall in ["lock", "semaphore"] { posture.mayLack[stall] = [.lock] }
        return posture
    }()

    package static let withoutListener: Posture = {
        var posture = Posture("control listener closed")
        posture.afterStart = .closeListener
        return posture
    }()

    package static let readOnly: Posture = {
        var posture = Posture("read-only root")
        posture.machine = .readOnly
        return posture
    }()

    /// A posture under a scope of Yama, as a user whom it concerns.
    package static func yama(_ scope: Int) -> Posture {
        var posture = Posture("unprivileged user, Yama \(scope)")
        (posture.isUnprivileged, posture.yamaScope) = (true, scope)
        return posture
    }
}

extension Posture {
    package var missingFeatures: Set<Capabilities.FeatureName> {
        let ofCalls: [String: Capabilities.FeatureName] = [
            "process_vm_readv": .processVMReadv, "ptrace": .ptrace, "fsync": .flush,
        ]
        let ofFiles: [String: Capabilities.FeatureName] = [
            "syscall": .syscall, "wchan": .waitChannel, "schedstat": .schedstat, "stack": .kernelStack,
            "status": .status,
        ]
        let missing = refusedCalls.keys.compactMap { ofCalls[$0] } + missingFiles.compactMap { ofFiles[$0] }
        let foreign: [Capabilities.FeatureName] =
            machine == .foreignProc
            ? [.read, .syscall, .waitChannel, .schedstat, .stat, .status, .kernelStack, .bootID] : []
        return Set(missing + (isDumpable ? [] : [.ptrace, .syscall]) + foreign)
    }

    /// Returns the words of the command that runs a program in this posture, without the program's own; `directory`
    /// stays writable, and `libraries` are the preloaded Tests/Support/Preload/forbid.c and hide.c.
    package func command(in directory: String, preloading libraries: [String]) -> [String] {
        var words: [String] = []
        switch machine {
        case .whole: break
        case .readOnly:
            words +=
                Self.ownMounts + [
                    "sh", "-c",
                    "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro / && cd \"$0\" && exec \"$@\"", directory,
                ]
        case .foreignProc: words += ["unshare", "--pid", "--fork", "--kill-child"]
        case .hiddenProcesses:
            words += Self.ownMounts + ["--pid", "--fork", "--kill-child"]
            words += ["sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"]
        }
        if isUnprivileged, geteuid() == 0 {
            words += ["setpriv", "--reuid=\(Self.otherUser)", "--regid=\(Self.otherUser)", "--clear-groups"]
        }
        if !limits.isEmpty { words += ["prlimit"] + limits }
        words += ["env", "LD_PRELOAD=\(libraries.joined(separator: ":"))"]
        let calls = refusedCalls.sorted { $0.key < $1.key }.map { "\($0):\($1)" }
        if !calls.isEmpty { words.append("FORBID_CALLS=\(calls.joined(separator: ","))") }
        if !missingFiles.isEmpty { words.append("MISSING_FILES=\(missingFiles.joined(separator: ","))") }
        if !isDumpable { words.append("NOT_DUMPABLE=1") }
        if let afterStart { words.append("AFTER_START=\(afterStart.rawValue)") }
        return words
    }

    private static let otherUser = 65_534
    private static let ownMounts =
        geteuid() == 0 ? ["unshare", "--mount"] : ["unshare", "--mount", "--map-root-user"]

    /// Whether this machine can set up the posture, found by trying it.
    package var isAvailable: Bool {
        if let yamaScope, !YamaScope.canBecome(yamaScope) { return false }
        guard let scratch = try? TemporaryDirectory() else { return false }
        // With namespaces of another user one is root inside, and nothing is hidden from root.
        let needsRoot = [.hiddenProcesses, .foreignProc].contains(machine) || afterStart == .dropUser
        if needsRoot, geteuid() != 0 { return false }
        let output = try? Command(
            program: "/usr/bin/env", arguments: command(in: scratch.path, preloading: []) + ["true"], timeout: 20
        ).run()
        return output?.reason == .exit && output?.status == 0
    }
}

/// The machine's setting kernel.yama.ptrace_scope.
package enum YamaScope {
    private static let path = "/proc/sys/kernel/yama/ptrace_scope"

    private static var current: Int? {
        FileManager.default.contents(atPath: path).flatMap {
            Int(String(decoding: $0, as: UTF8.self).filter(\.isNumber))
        }
    }

    /// Returns whether the scope can be set, and set back; scope 3 cannot be left.
    package static func canBecome(_ scope: Int) -> Bool {
        guard let current, current < 3, scope < 3 else { return false }
        return FileManager.default.isWritableFile(atPath: path)
    }

    /// Runs `body` under a scope, and sets the machine's own one again.
    package static func with<Result>(_ scope: Int, _ body: () throws -> Result) throws -> Result {
        let before = current
        try set(scope)
        defer { if let before { try? set(before) } }
        return try body()
    }

    private static func set(_ scope: Int) throws {
        // Not atomically: the file cannot be replaced.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.write(contentsOf: Data("\(scope)\n".utf8))
        try file.close()
    }
}
