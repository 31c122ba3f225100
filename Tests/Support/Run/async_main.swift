// A program with an async main that knows nothing of StallWatch, and waits for a monitor that is loaded into it. With the
// arguments `pool COUNT` it prints how many tasks run at the same time, once so many have done that. With `pin COUNT DIRECTORY`
// so many tasks block their threads until the directory has as many reports. With `read` it reads two lines; a block of the main
// queue waits for the second one. With `compute` it reads one, and computes.
import Foundation
import Synchronization

private func compute() {
    let end = ContinuousClock.now + .milliseconds(700)
    while ContinuousClock.now < end {}
}

@main enum Program {
    @inline(never) @MainActor static func waitOnTheMainActor() { usleep(600_000) }

    /// The tasks that run now, and the most that have done that at the same time.
    static let running = Mutex((now: 0, most: 0))

    static func count(to wanted: Int) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask(priority: .medium) {
                    running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                    // It keeps its thread, also for a moment after the last one has come.
                    repeat { usleep(20_000) } while running.withLock { $0.most } < wanted
                    running.withLock { $0.now -= 1 }
                }
            }
        }
        print(running.withLock { $0.most })
    }

    /// The number of reports in a directory.
    private static func reports(in directory: String) -> Int {
        var found = glob_t()
        defer { globfree(&found) }
        return glob(directory + "/stall-*.json", 0, nil, &found) == 0 ? Int(found.gl_pathc) : 0
    }

    @inline(never) static func keepTheThread(until wanted: Int, in directory: String) {
        repeat { usleep(50_000) } while reports(in: directory) < wanted
        // The first report is written again when the other threads are pinned, too.
        usleep(1_500_000)
    }

    static func pin(_ count: Int, _ directory: String) async {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask(name: "pin \(number)", priority: .medium) { keepTheThread(until: count, in: directory) }
            }
        }
    }

    @MainActor static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.count > 3 { return await pin(Int(arguments[2]) ?? 1, arguments[3]) }
        if arguments.count > 2 { return await count(to: Int(arguments[2]) ?? 1) }
        while system("cd /proc/$PPID; ! grep -q WatchPre maps || grep -qs watch-dog task/*/comm || ! sleep .1") != 0 {}
        try await Task.sleep(for: .milliseconds(600))
        if arguments.last == "read" {
            _ = readLine()
            Thread.detachNewThread {
                usleep(100_000)
                DispatchQueue.main.async {}
            }
            _ = readLine()
            exit(0)
        }
        if arguments.last == "compute" {
            _ = readLine()
            compute()
            exit(0)
        }
        waitOnTheMainActor()
        try await Task.sleep(for: .milliseconds(300))
        print("done")
        exit(7)
    }
}
