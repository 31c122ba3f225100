// An async `@main` program. The program here is in docs/guides/AsyncMain.md.

import Foundation
import StallWatch

@main
struct App {
    static func main() async throws {
        let monitor = try StallMonitor(.init(threshold: .milliseconds(250), outputs: [.directory("stalls")]))
        try monitor.watch(.main)  // the main actor
        try monitor.watch(.cooperativePool())  // all other tasks
        try monitor.start()
        defer { monitor.stop() }  // writes the reports that still wait

        try await serve()
    }
}

/// Stands for your program's own work, and blocks the main actor.
@MainActor func serve() async throws {
    try await Task.sleep(for: .seconds(1))
    readTheCatalogue()
}

func readTheCatalogue() {
    Thread.sleep(forTimeInterval: 1)
}
