// A program with an async main that knows nothing of StallWatch, and waits for a monitor that is loaded into it.
import Foundation

@main enum Program {
    @inline(never) @MainActor static func waitOnTheMainActor() { usleep(600_000) }

    @MainActor static func main() async throws {
        while system("cd /proc/$PPID; ! grep -q WatchPre maps || grep -qs watch-dog task/*/comm || ! sleep .1") != 0 {}
        try await Task.sleep(for: .milliseconds(600))
        waitOnTheMainActor()
        try await Task.sleep(for: .milliseconds(300))
        print("done")
        exit(7)
    }
}
