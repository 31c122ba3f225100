import Foundation
import Glibc
import Measuring

/// The wake-ups of a program whose event loops and queues have no work.
enum RestCost {
    static let seconds = 60.0
    /// The time in which the event loops' waits are learned, and idle workers of libdispatch end.
    private static let settling = 10.0
    /// The threads that StallWatch causes to wake up, if any: its own, and those of the event loops.
    private static let names = ["stallwatch-dog", "NIO-ELT"]

    static func table() throws -> Table {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try sibling("resting-loops"))
        process.standardInput = FileHandle.nullDevice
        try process.run()
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        let id = process.processIdentifier
        Thread.sleep(forTimeInterval: settling)
        let before = uses(of: id)
        Thread.sleep(forTimeInterval: seconds)
        let after = uses(of: id)
        guard before.count == 5, Set(before.keys) == Set(after.keys) else {
            throw CannotMeasure("the threads changed: \(before.keys.sorted()) and \(after.keys.sorted())")
        }
        return Table(
            title: "Four event loops and ten queues without work, \(Int(seconds)) s",
            columns: ["thread", "wake-ups", "CPU, us", "% of a CPU"],
            rows: after.sorted { $0.key < $1.key }.map { name, use in
                let earlier = before[name] ?? use
                let nanoseconds = use.nanosecondsOnCPU - earlier.nanosecondsOnCPU
                return [
                    name, (use.wakeUps - earlier.wakeUps).digits(0), (nanoseconds / 1_000).digits(0),
                    (nanoseconds / seconds / 1e7).digits(3),
                ]
            }
        )
    }

    /// The threads of interest by name.
    private static func uses(of process: Int32) -> [String: ThreadUse] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        var uses: [String: ThreadUse] = [:]
        for thread in all.compactMap({ Int32($0) }) {
            guard let comm = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/comm", encoding: .utf8) else {
                continue
            }
            let name = comm.trimmingCharacters(in: .newlines)
            if names.contains(where: name.hasPrefix) { uses[name] = ThreadUse(of: thread, in: "\(process)") }
        }
        return uses
    }
}
