import CSilentServer
import Foundation
import NIOPosix
import StallWatch
import Synchronization

/// A request whose handler looks a name up at a server that does not answer: it keeps a thread of the task pool.
enum Resolver {
    static let route = "resolve"
    /// How long the lookup waits, in seconds: longer than the threshold and two looks.
    private static let duration: Int32 = 4
    private static let port = silent_server_open()

    /// Carries out a request.
    static func lookUp() {
        guard silent_server_use(port, duration) else { return }
        var wanted = addrinfo()
        wanted.ai_family = AF_INET
        var found: UnsafeMutablePointer<addrinfo>?
        // The dot at the end keeps the resolver from appending the machine's search domains.
        if getaddrinfo("nobody.invalid.", nil, &wanted, &found) == 0 { freeaddrinfo(found) }
        silent_server_leave()
    }

    /// Sends one request in each round, and counts the reports that name its route.
    ///
    /// - Parameter rounds: The number of rounds.
    /// - Returns: Whether all reports are right.
    /// - Throws: The errors of the monitor and the server.
    static func run(_ rounds: Int) async throws -> Bool {
        let reports = Mutex<[StallReport]>([])
        var configuration = StallMonitor.Configuration(outputs: [
            .closure { report in
                guard report.kind == .pinned, report.state == .ended else { return }
                reports.withLock { $0.append(report) }
            }
        ])
        configuration.repeats.reportsEveryRepeat = true
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.main)
        try monitor.start()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let port = try await HummingbirdServer.start(
            on: group, routes: 0, monitor: monitor, limit: .seconds(60), ofPool: true)
        Switching.start()
        var right = 0
        for round in 0..<rounds {
            reports.withLock { $0.removeAll() }
            // On a thread of its own: the client waits for the answer.
            let answers = await withCheckedContinuation { continuation in
                Thread {
                    continuation.resume(returning: Client.send(1, round: round, to: port, path: "/\(route)"))
                }.start()
            }
            for _ in 0..<500 where reports.withLock({ $0.isEmpty }) { try await Task.sleep(for: .milliseconds(20)) }
            let found = reports.withLock { $0 }
            if answers == 1, found.count == 1, isRight(found[0]) {
                right += 1
            } else {
                print("round \(round): \(answers) answers, \(found.map(\.summary))")
            }
        }
        monitor.stop()
        print("resolver: \(right) of \(rounds) reports name the route and the call")
        return right == rounds
    }

    private static func isRight(_ report: StallReport) -> Bool {
        report.context?.label == "GET /\(route)" && report.cause?.kind == .io
            && report.culprit?.function.contains("lookUp") == true
    }
}
