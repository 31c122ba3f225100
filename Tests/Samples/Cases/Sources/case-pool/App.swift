import Foundation
import Dispatch
import StallWatch

@inline(never) func flushTheJournal() { Thread.sleep(forTimeInterval: 4) }
@inline(never) func waitForTheReply() { _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 2) }

@main
struct App {
    static func main() async throws {
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(250), outputs: [.directory("stalls")])
        configuration.control = .socket(directory: "stalls")
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.cooperativePool())
        try monitor.start()
        Task { for await report in monitor.makeReports() { print(report.summary) } }
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.5)
            let queues = (0..<5).map { DispatchQueue(label: "journal.\($0)") }
            for queue in queues { queue.async { flushTheJournal() } }
            Thread.sleep(forTimeInterval: 0.05)
            for _ in 0..<2 { Task.detached { waitForTheReply() } }
        }
        try await Task.sleep(for: .seconds(7))
        monitor.stop()
    }
}
