import Foundation
import Hummingbird
import NIOCore
import NIOPosix
import StallWatch

/// A server that answers with a few words: `watched-server PORT all|none`.
///
/// With `all`, its event loops, the task pool and the main queue are watched; with `none` there is no monitor.
@main
struct Program {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let port = Int(arguments[1]), ["all", "none"].contains(arguments[2]) else {
            FileHandle.standardError.write(Data("usage: watched-server PORT all|none\n".utf8))
            exit(64)
        }
        let group = MultiThreadedEventLoopGroup.singleton
        let monitor = arguments[2] == "all" ? try startMonitor(of: group) : nil
        let router = Router()
        router.get("/hello") { _, _ in "Hello from the server" }
        let server = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
            eventLoopGroupProvider: .shared(group)
        )
        try await server.runService()
        monitor?.stop()
    }

    private static func startMonitor(of group: any EventLoopGroup) throws -> StallMonitor {
        let monitor = try StallMonitor(.init(threshold: .milliseconds(250), outputs: []))
        try monitor.watch(.eventLoops(of: group, label: "http"))
        try monitor.watch(.cooperativePool(), threshold: .milliseconds(500))
        try monitor.watch(.main)
        try monitor.start()
        return monitor
    }
}
