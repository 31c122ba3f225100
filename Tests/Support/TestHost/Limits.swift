import Foundation
import Glibc
import StallWatch

/// Stalls of a program that is short of descriptors, or gives up its user after the start.
enum Limits {
    /// The id of an unprivileged user.
    private static let otherUser: uid_t = 65_534
    /// Threads beside the main thread, as many as a report has at most.
    private static let threads = 62

    /// Stalls once among many threads that are all captured.
    ///
    /// Prints the number of open descriptors before the stall and after it.
    static func captureManyThreads(directory: String) throws {
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), reports: .directory(directory))
        configuration.captureAllThreads = true
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.mainRunLoop)
        try monitor.start()
        for number in 0..<threads { Deadlock.startThread("waits-\(number)") { while true { sleep(600) } } }
        // The run loop has its own descriptors after a turn, and the monitor its own once it has tried what works here.
        stallOnce(milliseconds: 1)
        let before = settledDescriptors()
        stallOnce(milliseconds: 300)
        let deadline = now() + 20_000_000_000
        while monitor.statistics.stalls == 0 || openDescriptors > before + 2, now() < deadline { usleep(20_000) }
        tell("F \(before) \(openDescriptors)")
        monitor.stop()
        exit(0)
    }

    /// The number of open descriptors once it has been the same for a second, after at most 20 s.
    private static func settledDescriptors() -> Int {
        let limit = now() + 20_000_000_000
        var (count, since) = (openDescriptors, now())
        while now() < min(since + 1_000_000_000, limit) {
            usleep(20_000)
            let current = openDescriptors
            if current != count { (count, since) = (current, now()) }
        }
        return count
    }

    /// Gives up root's rights after the start, as a server does that has opened its port, and stalls.
    static func dropUser(directory: String) throws {
        let monitor = try StallMonitor(.init(threshold: .milliseconds(50), reports: .directory(directory)))
        try monitor.watch(.mainRunLoop)
        try monitor.start()
        becomeOtherUser(owning: directory)
        stallOnce(milliseconds: 300)
        monitor.stop()
        tell("S \(monitor.statistics.stalls) \(monitor.statistics.failedWrites)")
    }

    /// Follows the pattern of the guide: the directory belongs to the user that writes the reports.
    static func becomeOtherUser(owning directory: String) {
        guard chown(directory, otherUser, otherUser) == 0, setgid(otherUser) == 0, setuid(otherUser) == 0 else {
            exit(77)
        }
    }

    /// Closes the process's listening sockets, as a program does that closes all descriptors from 3 on.
    static func closeListeners() {
        var closed = 0
        for descriptor: Int32 in 3..<256 {
            var isListening: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening != 0 else {
                continue
            }
            close(descriptor)
            closed += 1
        }
        if closed != 1 { exit(70) }
    }

    private static var openDescriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }
}
