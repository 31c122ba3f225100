package import Foundation

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

    /// Removes the directory.
    package func finish() throws {
        if FileManager.default.fileExists(atPath: directory.path) { try FileManager.default.removeItem(at: directory) }
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
