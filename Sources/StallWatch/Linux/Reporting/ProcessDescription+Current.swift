import StallReports
import StallSymbols
import LinuxSupport
import Glibc

extension StallReport {
    /// Whether it is of this process, and not of an earlier one with the same id, as the first ones of containers have.
    package var isOfThisProcess: Bool {
        guard process.pid == getpid() else { return false }
        // Where /proc does not show it, the id is all that is known.
        guard let named = ProcessIdentity(process), let own = ProcessIdentity.current() else { return true }
        return named.startTicks == own.startTicks && named.bootID == own.bootID
    }
}

extension StallReport.ProcessDescription {
    static func current() -> Self {
        var system = utsname()
        uname(&system)
        let executable = OwnExecutable.path
        let stat = readSmallFile("/proc/self/stat")
        var process = Self(
            name: fileName(executable), pid: getpid(), executable: executable, architecture: string(system.machine),
            kernel: string(system.release), hostname: string(system.nodename))
        process.startedAt = startTime(stat: stat, systemStat: readSmallFile("/proc/stat"))
        process.startTicks = stat.flatMap(ProcStat.init)?.startTicks
        process.operatingSystem = readSmallFile("/etc/os-release").flatMap(prettyName)
        // It identifies the process with its id, which another PID namespace's /proc does not show.
        process.bootID = ProcessIdentity.current()?.bootID
        process.pidNamespace = ProcessIdentity.ownPIDNamespace
        return process
    }

    /// Returns the sum of `btime` in /proc/stat (in seconds since 1970) and field 22 of /proc/self/stat (clock ticks
    /// since boot; proc(5)); `nil` if one is missing or damaged.
    static func startTime(stat: String?, systemStat: String?) -> Timestamp? {
        guard let ticks = stat.flatMap(ProcStat.init)?.startTicks, let systemStat else { return nil }
        var fields = ByteCursor(systemStat)
        guard fields.skip(pastLinePrefix: "btime "), let bootSeconds = fields.number(), bootSeconds < 1 << 40,
            ticks < 1 << 50
        else { return nil }
        let ticksPerSecond = sysconf(Int32(_SC_CLK_TCK))
        guard ticksPerSecond > 0 else { return nil }
        let sinceBoot = Int64(Double(ticks) / Double(ticksPerSecond) * 1_000_000)
        return Timestamp(microsecondsSince1970: Int64(bootSeconds) * 1_000_000 + sinceBoot)
    }

    private static func prettyName(_ release: String) -> String? {
        let (key, quote) = ("PRETTY_NAME=".utf8, UInt8(ascii: "\""))
        let lines = Array(release.utf8).split(separator: UInt8(ascii: "\n"))
        guard let line = lines.first(where: { $0.starts(with: key) }) else { return nil }
        return String(decoding: line.dropFirst(key.count).drop { $0 == quote }.prefix { $0 != quote }, as: UTF8.self)
    }

    private static func string<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}
