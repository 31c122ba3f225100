package import CoreFoundation
import Dispatch
package import Foundation
import Glibc
import Synchronization

/// Nanoseconds of CLOCK_MONOTONIC.
package func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Returns the mean time of `count` runs of `body`, in nanoseconds.
package func meanNanoseconds(_ count: Int, _ body: () -> Void) -> Double {
    let began = now()
    for _ in 0..<count { body() }
    return Double(now() - began) / Double(count)
}

/// The reason why a cost cannot be measured on this machine.
package struct CannotMeasure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// The resident memory of this process.
package enum Resident: String, CaseIterable {
    case all = "Rss:"
    /// Memory without a file.
    case anonymous = "Anonymous:"
    /// The peak.
    case most = "VmHWM:"

    /// The amount in megabytes of a million bytes.
    ///
    /// smaps_rollup counts the pages. Only status has the peak; its sums are kept per processor and may be off by some
    /// hundred kilobytes (proc_pid_smaps(5), proc_pid_statm(5)).
    package var megabytes: Double {
        let file = self == .most ? "/proc/self/status" : "/proc/self/smaps_rollup"
        let lines = (try? String(contentsOfFile: file, encoding: .utf8))?.split(separator: "\n")
        let kilobytes = lines?.first { $0.hasPrefix(rawValue) }.flatMap { Double($0.filter(\.isNumber)) }
        return (kilobytes ?? 0) * 1024 / 1e6
    }
}

/// Prints a line with all three amounts.
package func printResident(_ when: String) {
    print(([when] + Resident.allCases.map { $0.megabytes.digits(3) }).joined(separator: ":"))
}

/// A table in Markdown.
package struct Table {
    package let title: String
    package let columns: [String]
    package var rows: [[String]]

    package init(title: String, columns: [String], rows: [[String]] = []) {
        self.title = title
        self.columns = columns
        self.rows = rows
    }

    package var text: String {
        let lines = [columns, ["---"] + columns.dropFirst().map { _ in "---:" }] + rows
        return "## \(title)\n\n" + lines.map { "| \($0.joined(separator: " | ")) |\n" }.joined()
    }
}

/// Measured values of one kind.
package struct Samples {
    private let sorted: [Double]

    package init(_ values: some Sequence<Double>) {
        sorted = values.sorted()
    }

    package var median: Double { percentile(50) }

    /// Returns the given percentile; 0 without values.
    package func percentile(_ percentage: Int) -> Double {
        sorted.isEmpty ? 0 : sorted[min(sorted.count * percentage / 100, sorted.count - 1)]
    }
}

extension Double {
    /// Returns the number with this many digits after the point.
    package func digits(_ count: Int) -> String {
        var scale = 1.0
        for _ in 0..<count { scale *= 10 }
        let scaled = (magnitude * scale).rounded()
        let whole = Int(scaled / scale)
        let sign = self < 0 && scaled > 0 ? "-" : ""
        guard count > 0 else { return "\(sign)\(whole)" }
        let fraction = String(Int(scaled) - whole * Int(scale))
        return "\(sign)\(whole)." + String(repeating: "0", count: count - fraction.count) + fraction
    }
}

/// The watchdog in most articles: each activity signals a semaphore, and a thread waits for it with a timeout of 50 ms.
package final class SemaphoreWatcher: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let activity = Atomic<UInt>(0)
    private let stalls = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    private let thread = Atomic<Int32>(0)

    package init() {
        Thread.detachNewThread { self.watch() }
    }

    /// The kernel's id of the thread; `nil` until it runs.
    package var threadID: Int32? {
        let known = thread.load(ordering: .relaxed)
        return known == 0 ? nil : known
    }

    package func note(_ activity: CFRunLoopActivity) {
        self.activity.store(UInt(activity.rawValue), ordering: .relaxed)
        semaphore.signal()
    }

    package func stop() {
        isStopping.store(true, ordering: .relaxed)
        ended.wait()
    }

    private func watch() {
        // The link is to PID/task/TID (proc(5)).
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
        thread.store(own?.split(separator: "/").last.flatMap { Int32($0) } ?? 0, ordering: .relaxed)
        let working = [CFRunLoopActivity.beforeSources, .afterWaiting].map { UInt($0.rawValue) }
        while !isStopping.load(ordering: .relaxed) {
            guard semaphore.wait(timeout: .now() + .milliseconds(50)) == .timedOut else { continue }
            if working.contains(activity.load(ordering: .relaxed)) { stalls.add(1, ordering: .relaxed) }
        }
        ended.signal()
    }
}

/// Runs the program at `path` and returns its standard output.
///
/// `showsErrors` passes its standard error through. Throws if its exit status is not 0.
package func output(of path: String, _ arguments: [String] = [], showsErrors: Bool = true) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    if !showsErrors { process.standardError = FileHandle.nullDevice }
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw CannotMeasure("\(([path] + arguments).joined(separator: " ")) ended with \(process.terminationStatus)")
    }
    return text
}

/// Returns the path of another program of this package, in the directory of this one.
package func sibling(_ name: String) throws -> String {
    let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(name).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
        throw CannotMeasure("there is no \(name) beside this program: build it, too")
    }
    return path
}

/// A program with a run loop that stalls as often as its arguments say: `WORD COUNT...`.
///
/// Its two versions differ only in StallWatch. After each step it prints its resident memory.
package struct StallingProgram {
    /// The first argument, which is for the monitor.
    package let word: String
    /// The directory for the reports, which does not exist yet.
    package let directory: URL
    private let goals: [Int]

    package init() {
        let arguments = CommandLine.arguments.dropFirst()
        word = arguments.first ?? ""
        goals = arguments.dropFirst().compactMap { Int($0) }
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-resident-\(getpid())")
    }

    /// Runs the main loop; `seen` gets the number of stalls and returns the number of detected ones.
    package func run(seen: (Int) -> Int) throws {
        let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
        RunLoop.main.add(timer, forMode: .default)
        RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
        printResident("started")
        var made = 0
        for goal in goals {
            while seen(made) < goal {
                // Twice the goal: more stalls would not help.
                guard made < 2 * goal else { throw CannotMeasure("\(seen(made)) of \(made) stalls were seen") }
                made += 1
                let depth = made % 64
                RunLoop.main.perform { stall(depth) }
                RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.002))
            }
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 2))
            printResident("after \(goal)")
        }
        timer.invalidate()
    }

    /// Removes the directory, into which a sink that was late at the stop may still write.
    package func finish() throws {
        var tries = 0
        while FileManager.default.fileExists(atPath: directory.path) {
            do {
                try FileManager.default.removeItem(at: directory)
            } catch {
                guard tries < 100 else { throw error }
                tries += 1
                usleep(100_000)
            }
        }
    }
}

/// Stalls for 8 ms on one of 64 stacks, which differ in depth.
@inline(never) private func stall(_ depth: Int) {
    if depth > 0 { stall(depth - 1) } else { compute() }
    // Work after the call, so that it is no tail call.
    checksum &+= 1
}

@inline(never) private func compute() {
    let end = now() + 8_000_000
    while now() < end { checksum &+= 1 }
}

/// `nonisolated(unsafe)`: only the main thread uses it.
nonisolated(unsafe) private var checksum: UInt64 = 0
