import Foundation
import Hummingbird
import NIOPosix
import StallWatch

@main
struct Notes {
    static func main() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let monitor = try StallMonitor(.init(threshold: .milliseconds(100), outputs: [.directory("stalls")]))
        try monitor.watch(.eventLoops(of: group, label: "http"))
        try monitor.watch(.cooperativePool(), threshold: .milliseconds(500))
        try monitor.watch(.main)

        let router = Router()
        router.get("slow") { _, _ in
            readTheCatalogue()
            return "done"
        }
        let server = Application(
            router: router,
            configuration: .init(address: .hostname("127.0.0.1", port: 8080)),
            services: [monitor],  // started and stopped with the server
            eventLoopGroupProvider: .shared(group)
        )
        try await server.runService()
    }
}

/// Blocks a thread of the task pool.
func readTheCatalogue() {
    Thread.sleep(forTimeInterval: 3)
}
