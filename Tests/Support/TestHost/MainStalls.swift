import CStalls
import CoreFoundation
import Dispatch
import Foundation
import Glibc
import StallWatch

/// One stall of the main run loop for each main cause, one after another; prints the monitor's capabilities, and then a
/// line for each stall: its name, its begin in microseconds since 1970, its duration and its thread's CPU time in
/// microseconds, its page faults that went to a disk, and whether its call returned EINTR or early.
///
/// At the end it prints what the monitor proves of itself, up to PROOF_ATTEMPTS times (1) until that is whole. It waits
/// SETTLE_SECONDS (30) at most for the reports before.
struct MainStalls {
    private let monitor: StallMonitor
    /// Signalled by the main thread as it begins to wait for another thread, whose time begins then.
    fileprivate static let begins = DispatchSemaphore(value: 0)
    /// The duration of each stall, in milliseconds.
    private let duration: Int
    /// A large file that no other program uses.
    private let file: String
    private let directory: String
    /// What the process does to itself after the start, by name (`Posture.AfterStart`).
    private let afterStart = ProcessInfo.processInfo.environment["AFTER_START"]

    /// The directory of the reports, the threshold and the duration in milliseconds, and the file.
    init(_ arguments: ArraySlice<String>) throws {
        let words = Array(arguments)
        guard words.count == 4, let threshold = Int(words[1]), let duration = Int(words[2]) else { exit(64) }
        self.duration = duration
        (directory, file) = (words[0], words[3])
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(threshold), outputs: [.directory(directory)])
        if afterStart == "closeListener" { configuration.control = .socket(directory: directory) }
        // Stalls without a stack are alike.
        configuration.repeats.reportsEveryRepeat = true
        // For strace(1), which traces like a debugger.
        configuration.detection.whenDebugged = .report
        monitor = try StallMonitor(configuration)
    }

    func run() throws {
        let (duration, file) = (duration, file)
        do { try monitor.watch(.runLoop(.main, label: "main")) } catch {
            tell("R \(error)")
            return
        }
        try monitor.start()
        let capabilities = String(decoding: monitor.checkCapabilities().jsonData(), as: UTF8.self)
        tell("C \(capabilities.split(separator: "\n").joined())")
        switch afterStart {
        case "dropUser": Limits.becomeOtherUser(owning: directory)
        case "closeListener": Limits.closeListeners()
        default: break
        }
        stall("cpu") { compute(for: duration) }
        stall("sleep") { sleepInNanosleep(for: duration) }
        let lock = HeldMutex(for: duration)
        stall("lock") { waitForTheMutex(lock) }
        stall("semaphore") { waitForTheDispatchSemaphore(for: duration) }
        let pipe = SilentPipe(for: duration)
        stall("pipe") { readTheSilentPipe(pipe) }
        stall("child") { waitForTheChildProcess(for: duration) }
        // A signal or a stop ends this call with EINTR, whatever a handler's flags are.
        stall("epoll") { stalls_wait_in_epoll(Int32(duration)) }
        stall("paging") { touchPages(ofFile: file, for: duration) }
        // A run may take a minute (`PostureRun`); where the system refuses a thread, nothing is named until the end.
        monitor.settle(seconds: Self.number("SETTLE_SECONDS") ?? 30)
        for _ in 0..<(Self.number("PROOF_ATTEMPTS") ?? 1) {
            let proof = monitor.prove()
            tell("P \(String(decoding: try JSONEncoder().encode(proof), as: UTF8.self))")
            if proof.isWhole { break }
        }
        monitor.stop()
        tell("S \(monitor.statistics.stalls)")
    }

    private static func number(_ variable: String) -> UInt64? {
        ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }
    }

    /// Stalls in `work`, which returns whether its call was interrupted.
    private func stall(_ name: String, _ work: @escaping @Sendable () -> Bool) {
        stallOnce {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            let (began, before) = (now(), Usage())
            let isInterrupted = work()
            let after = Usage()
            tell(
                "K \(name) \(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000) \((now() - began) / 1_000) "
                    + "\(after.microseconds - before.microseconds) \(after.faults - before.faults) \(isInterrupted)"
            )
        }
    }

    private struct Usage {
        let microseconds: Int
        let faults: Int

        init() {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            microseconds = time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
            var usage = rusage()
            getrusage(RUSAGE_SELF.rawValue, &usage)
            faults = usage.ru_majflt
        }
    }
}

/// A mutex that another thread holds for a while; the mutex is shared by the two threads and outlives both.
private final class HeldMutex: @unchecked Sendable {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init(for milliseconds: Int) {
        pthread_mutex_init(mutex, nil)
        let isHeld = DispatchSemaphore(value: 0)
        Deadlock.startThread("lock-holder") { [self] in
            pthread_mutex_lock(mutex)
            isHeld.signal()
            MainStalls.begins.wait()
            usleep(UInt32(milliseconds) * 1_000)
            pthread_mutex_unlock(mutex)
        }
        isHeld.wait()
    }
}

/// A pipe into which a byte is written after a while.
private final class SilentPipe: Sendable {
    let readEnd: Int32

    init(for milliseconds: Int) {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        readEnd = ends[0]
        let writeEnd = ends[1]
        Deadlock.startThread("pipe-writer") {
            MainStalls.begins.wait()
            usleep(UInt32(milliseconds) * 1_000)
            var byte: UInt8 = 0
            write(writeEnd, &byte, 1)
        }
    }
}

// The functions that stall. Each makes the blocking call itself, so that it is the innermost function of the app, and returns
// whether the call was interrupted.

/// Computes until the thread has used that much CPU time.
@inline(never)
private func compute(for milliseconds: Int) -> Bool {
    var start = timespec()
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
    repeat {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    } while (time.tv_sec &- start.tv_sec) &* 1_000_000_000 &+ time.tv_nsec &- start.tv_nsec < milliseconds &* 1_000_000
    return false
}

@inline(never)
private func sleepInNanosleep(for milliseconds: Int) -> Bool {
    var time = timespec(tv_sec: 0, tv_nsec: milliseconds * 1_000_000)
    let result = nanosleep(&time, nil)
    return result != 0
}

@inline(never)
private func waitForTheMutex(_ lock: HeldMutex) -> Bool {
    MainStalls.begins.signal()
    let result = pthread_mutex_lock(lock.mutex)
    pthread_mutex_unlock(lock.mutex)
    return result != 0
}

@inline(never)
private func waitForTheDispatchSemaphore(for milliseconds: Int) -> Bool {
    let semaphore = DispatchSemaphore(value: 0)
    let began = now()
    let result = semaphore.wait(timeout: .now() + .milliseconds(milliseconds))
    return result == .success || now() - began < UInt64(milliseconds) * 1_000_000
}

@inline(never)
private func readTheSilentPipe(_ pipe: SilentPipe) -> Bool {
    var byte: UInt8 = 0
    MainStalls.begins.signal()
    let count = read(pipe.readEnd, &byte, 1)
    return count != 1
}

@inline(never)
private func waitForTheChildProcess(for milliseconds: Int) -> Bool {
    var child: pid_t = 0
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sleep"), strdup("\(Double(milliseconds) / 1_000)"), nil]
    var status: Int32 = 0
    guard posix_spawnp(&child, "sleep", nil, nil, &arguments, environ) == 0 else { return true }
    let ended = waitpid(child, &status, 0)
    for argument in arguments { free(argument) }
    return ended != child
}

/// Reads a mapped file page by page, in an order that defeats read-ahead.
@inline(never)
private func touchPages(ofFile path: String, for milliseconds: Int) -> Bool {
    let descriptor = open(path, O_RDONLY)
    let size = Int(lseek(descriptor, 0, Int32(SEEK_END)))
    let end = now() + UInt64(milliseconds) * 1_000_000
    var sum: UInt8 = 0
    while size > 0, now() < end {
        // The kernel drops only clean pages without a mapping.
        posix_fadvise(descriptor, 0, size, Int32(POSIX_FADV_DONTNEED))
        guard let pages = mmap(nil, size, PROT_READ, MAP_SHARED, descriptor, 0), pages != MAP_FAILED else { break }
        madvise(pages, size, Int32(MADV_RANDOM))
        var page = 1
        var left = size / 4096
        while left > 0, now() < end {
            page = (page &* 1_664_525 &+ 1_013_904_223) % (size / 4096)
            sum &+= pages.load(fromByteOffset: page * 4096, as: UInt8.self)
            left &-= 1
        }
        munmap(pages, size)
    }
    close(descriptor)
    errno = Int32(sum)
    return false
}

/// Stalls of a program that is short of descriptors, or gives up its user after the start.
enum Limits {
    private static let otherUser: uid_t = 65_534
    /// Threads beside the main thread, as many as a report has at most.
    private static let threads = 62

    /// Stalls twice among many threads that are all captured; prints the number of open descriptors after each stall.
    static func captureManyThreads(directory: String) throws {
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), outputs: [.directory(directory)])
        configuration.detection.capturesAllThreads = true
        let monitor = try StallMonitor.ofMainRunLoop(configuration)
        for number in 0..<threads { Deadlock.startThread("waits-\(number)") { while true { sleep(600) } } }
        // After the first stall the run loop and the monitor have descriptors of their own.
        stallOnce(milliseconds: 300)
        let deadline = now() + 60_000_000_000
        while monitor.statistics.stalls == 0, now() < deadline { usleep(20_000) }
        // Until the report has its names, whose files are open meanwhile.
        monitor.settle(seconds: 30)
        let before = settledDescriptors()
        stallOnce(milliseconds: 300)
        while monitor.statistics.stalls == 1 || openDescriptors.map({ $0 > before }) ?? true, now() < deadline {
            usleep(20_000)
        }
        tell("F \(before) \(settledDescriptors())")
        monitor.stop()
        exit(0)
    }

    /// The number of open descriptors once it has been the same for a second, after at most 20 s.
    private static func settledDescriptors() -> Int {
        let limit = now() + 20_000_000_000
        var (count, since) = (openDescriptors, now())
        while now() < (count == nil ? limit : min(since + 1_000_000_000, limit)) {
            usleep(20_000)
            let current = openDescriptors
            if current != count { (count, since) = (current, now()) }
        }
        guard let count else { exit(71) }
        return count
    }

    /// Gives up root's rights after the start, as a server does that has opened its port, and stalls.
    static func dropUser(directory: String) throws {
        let monitor = try StallMonitor.ofMainRunLoop(
            .init(threshold: .milliseconds(50), outputs: [.directory(directory)]))
        becomeOtherUser(owning: directory)
        stallOnce(milliseconds: 2_000)
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

    /// `nil` while no descriptor is left to count them with.
    private static var openDescriptors: Int? {
        try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}
