import Dispatch
import Foundation
import Glibc
import StallWatch

/// A crash on the main thread or on one of the monitor's threads.
enum Crash {
    private enum Place: String {
        case bare
        case monitored
        case sink
    }

    static func run(_ place: String) throws {
        guard let place = Place(rawValue: place) else { exit(64) }
        forbidCoreDumps()
        if place != .bare {
            var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), outputs: [])
            configuration.outputs += [
                .closure { _ in
                    guard place == .sink else { return }
                    waitForLastingThreads()
                    crash()
                }
            ]
            _ = try StallMonitor.ofMainRunLoop(configuration)
        }
        if place == .sink {
            stallOnce(milliseconds: 150)
            sleep(60)
        }
        waitForLastingThreads()
        crash()
    }

    /// Waits until there are only threads that last, for 20 s at most: Swift's crash handler complains of one that ends
    /// while it looks.
    private static func waitForLastingThreads() {
        let lasting = Set(["test", "dog", "rep", "app", "send"].map { "stallwatch-\($0)\n" })
        let deadline = now() + 20_000_000_000
        while now() < deadline {
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
            let names = threads.map { thread in
                let name = FileManager.default.contents(atPath: "/proc/self/task/\(thread)/comm") ?? Data()
                return String(decoding: name, as: UTF8.self)
            }
            // Until it names itself, a thread has the name of the one that started it.
            if Set(names).isSubset(of: lasting), Set(names).count == names.count { return }
            usleep(5_000)
        }
    }

    @inline(never) private static func crash() {
        fatalError("the test's own crash")
    }
}

/// A deadlock of the main thread and another thread, until the process is killed.
enum Deadlock {
    static func run(directory: String, threshold: Duration) throws {
        _ = try StallMonitor.ofMainRunLoop(.init(threshold: threshold, outputs: [.directory(directory)]))
        startThread("bystander") { _ = pause() }
        enter()
    }

    /// Makes the main thread and a thread named `other-side` wait for each other, in a turn of the main run loop.
    static func enter(in turn: (@escaping @Sendable () -> Void) -> Void = stallOnce) {
        let (first, second) = (NSLock(), NSLock())
        let (hasSecond, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        startThread("other-side") {
            second.lock()
            hasSecond.signal()
            mayGoOn.wait()
            first.lock()
            tell("came back")
        }
        hasSecond.wait()
        turn {
            first.lock()
            mayGoOn.signal()
            second.lock()
            tell("came back")
        }
    }

    private static let stackBytes = 512 << 10

    /// Starts a thread, and waits until it is about to run `body`.
    static func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let isNamed = DispatchSemaphore(value: 0)
        let thread = Thread {
            // Takes effect at once, unlike Foundation's thread name.
            if let file = fopen("/proc/thread-self/comm", "w") {
                fputs(name, file)
                fclose(file)
            }
            isNamed.signal()
            body()
        }
        // Foundation says nothing if there is no room for a stack, as below a limit on addresses.
        thread.stackSize = stackBytes
        thread.start()
        isNamed.wait()
    }
}

struct FullDisk {
    let directory: String

    /// Temporarily limits the file size to a few bytes (RLIMIT_FSIZE), which needs no privilege.
    func runWithSmallFiles() throws {
        signal(SIGXFSZ, SIG_IGN)
        let monitor = try StallMonitor.ofMainRunLoop(
            .init(threshold: .milliseconds(100), outputs: [.directory(directory)]))
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        let whole = limit
        limit.rlim_cur = 16
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        stallOnce(firstWay)
        wait { monitor.statistics.failedWrites > 0 }
        tell("small: reports \(reports(in: directory)), failures \(monitor.statistics.failedWrites > 0)")
        limit = whole
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        wait { reports(in: directory) == 1 }
        monitor.stop()
        tell("large: reports \(reports(in: directory)), temporary \(temporaries(in: directory))")
        tell("stalls \(monitor.statistics.stalls), lost \(monitor.statistics.reportsLost)")
    }

    /// Fills a tmpfs of 256 KiB to its last byte.
    func run() throws {
        guard mount() else { exit(77) }
        let mountPoint = directory
        let directory = mountPoint + "/stalls"
        let monitor = try StallMonitor.ofMainRunLoop(
            .init(threshold: .milliseconds(100), outputs: [.directory(directory)]))

        stallOnce(firstWay)
        // Each report with its last state: a later write would create again what is deleted below.
        monitor.settle()
        wait { reports(in: directory) == 1 }
        let filler = mountPoint + "/filler"
        fill(filler)
        // Use different functions, so that no stall is suppressed as a repeat.
        stallOnce(oneWay)
        stallOnce(anotherWay)
        monitor.settle()
        wait { monitor.statistics.failedWrites > 0 }
        tell("full: reports \(reports(in: directory)), failures \(monitor.statistics.failedWrites > 0)")
        unlink(filler)
        // The store retries by itself within the backoff's first seconds.
        wait { reports(in: directory) == 3 }
        tell("free: reports \(reports(in: directory))")
        removeAll(directory)
        stallOnce(aThirdWay)
        wait { reports(in: directory) == 1 }
        monitor.stop()
        let statistics = monitor.statistics
        tell("deleted: reports \(reports(in: directory)), temporary \(temporaries(in: directory))")
        tell("stalls \(statistics.stalls), lost \(statistics.reportsLost)")
    }

    /// Mounts the tmpfs; call it only in a private mount namespace, in which the test starts the process.
    func mount() -> Bool {
        Glibc.mount("tmpfs", directory, "tmpfs", 0, "size=256k") == 0
    }

    private func fill(_ path: String) {
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        let block = [UInt8](repeating: 0, count: 4096)
        while write(file, block, block.count) > 0 {}
        close(file)
    }

    private func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    private func reports(in directory: String) -> Int {
        names(in: directory).filter { $0.hasPrefix("stall-") && $0.hasSuffix(".json") }.count
    }

    private func temporaries(in directory: String) -> Int {
        names(in: directory).filter { $0.hasSuffix(".tmp") }.count
    }

    private func removeAll(_ directory: String) {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Waits up to a minute for other threads; the test checks the output afterwards.
    private func wait(for condition: () -> Bool) {
        let deadline = now() + 60_000_000_000
        while !condition(), now() < deadline { usleep(10_000) }
    }
}

// Each function does work after its call, so that its frame stays on the stack during the call.
@inline(never) private func firstWay() { usleep(300_000); tell("0") }
@inline(never) private func oneWay() { usleep(300_000); tell("1") }
@inline(never) private func anotherWay() { usleep(300_000); tell("2") }
@inline(never) private func aThirdWay() { usleep(300_000); tell("3") }
