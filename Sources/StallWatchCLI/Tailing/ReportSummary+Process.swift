import LinuxSupport

extension ReportSummary {
    /// Whether its process ran on this host since this boot, and has ended.
    ///
    /// The host name distinguishes most containers, whose processes have other ids here.
    var processIsGone: Bool {
        guard let startTicks = process.startTicks, let bootID = process.bootID, bootID == Self.bootID,
            process.hostname == Self.hostname
        else { return false }
        return !ProcessIdentity(pid: process.pid, startTicks: startTicks, bootID: bootID).isAlive
    }

    private static let bootID = firstLine(of: "/proc/sys/kernel/random/boot_id")
    private static let hostname = firstLine(of: "/proc/sys/kernel/hostname")

    private static func firstLine(of path: String) -> String? {
        let bytes = try? FileReader(path: path).read(256)
        return bytes.map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) }
    }
}
