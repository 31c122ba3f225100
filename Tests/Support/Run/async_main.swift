// A program with an async main that knows nothing of StallWatch.
import Foundation

@main enum Program {
    @inline(never) @MainActor static func waitOnTheMainActor() { usleep(600_000) }

    @MainActor static func main() async throws {
        try await Task.sleep(for: .milliseconds(600))
        waitOnTheMainActor()
        try await Task.sleep(for: .milliseconds(300))
        print("done")
        exit(7)
    }
}
