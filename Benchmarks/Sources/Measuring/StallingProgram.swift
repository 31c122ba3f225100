package import Foundation

/// A program with a run loop, which stalls as often as its arguments say: `WORD COUNT...`.
///
/// With StallWatch and without it, it is the same but for what StallWatch needs. After each step it prints its resident
/// memory.
package struct StallingProgram {
    /// The first argument, which is for the monitor.
    package let word: String
    /// Not there yet.
    package let directory: URL
    private let goals: [Int]

    package init() {
        let arguments = CommandLine.arguments.dropFirst()
        word = arguments.first ?? ""
        goals = arguments.dropFirst().compactMap { Int($0) }
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-resident-\(getpid())")
    }

    /// Runs the main loop; `seen` returns how many of so many stalls were seen.
    package func run(seen: (Int) -> Int) throws {
        let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
        RunLoop.main.add(timer, forMode: .default)
        RunLoop.main.run(until: Date(timeIntervalSinceNow: 1))
        printResident("started")
        var made = 0
        for goal in goals {
            while seen(made) < goal {
                // Twice what is asked for: something else is wrong then.
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

    /// Leaves nothing behind.
    package func finish() throws {
        if FileManager.default.fileExists(atPath: directory.path) { try FileManager.default.removeItem(at: directory) }
    }
}

/// Stalls for 8 ms in one of 64 places: the depth is a part of the stack.
@inline(never) private func stall(_ depth: Int) {
    if depth > 0 { stall(depth - 1) } else { compute() }
    // After the call, so that it is none in tail position.
    checksum &+= 1
}

@inline(never) private func compute() {
    let end = now() + 8_000_000
    while now() < end { checksum &+= 1 }
}

/// Used by the main thread alone.
nonisolated(unsafe) private var checksum: UInt64 = 0
