import Hummingbird
import NIOPosix
import ServiceLifecycle
import StallWatch

/// A Hummingbird server, whose handlers run on its event loop.
enum HummingbirdServer {
    /// Runs the server in the background.
    ///
    /// - Parameters:
    ///   - group: Its event loops.
    ///   - routes: The number of routes.
    ///   - monitor: Reports the requests that take longer than `limit`.
    ///   - limit: The limit of a request.
    ///   - ofPool: Whether the handlers run on the task pool, as Hummingbird's do by default.
    /// - Returns: The port.
    /// - Throws: Nothing: the errors of the server end its task.
    static func start(
        on group: MultiThreadedEventLoopGroup, routes: Int, monitor: StallMonitor, limit: Duration, ofPool: Bool = false
    ) async throws -> Int {
        let router = Router()
        router.addMiddleware {
            TracingMiddleware()
            StallContextMiddleware()
            OverdueMiddleware(monitor: monitor, limit: limit)
        }
        for number in 0..<routes {
            router.get("item/\(number)") { _, _ in
                // A task with a name: SE-0469.
                await withTaskGroup(of: Void.self) { tasks in
                    tasks.addTask(name: "item \(number)") {
                        Work.run(number)
                        await Leak.wait(in: number)
                    }
                }
                return "done"
            }
        }
        router.get("\(Resolver.route)") { _, _ in
            Resolver.lookUp()
            return "done"
        }
        let (ports, port) = AsyncStream<Int>.makeStream()
        let server = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { port.yield($0.localAddress?.port ?? 0) }, eventLoopGroupProvider: .shared(group)
        )
        // The tasks of the server inherit the executor.
        Task(executorPreference: ofPool ? nil : LoopExecutor(group.next())) { try await server.run() }
        for await port in ports { return port }
        return 0
    }
}
