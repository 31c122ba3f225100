import Foundation
import NIOPosix
import StallWatch
import Synchronization
import Tracing

/// Sends 100 requests at a time, of which one blocks, and counts the reports that name it.
///
///     context-servers hummingbird|nio ROUNDS
@main
struct Program {
    private static let requests = 100

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let rounds = Int(arguments[2]), ["hummingbird", "nio"].contains(arguments[1]) else {
            print("Give a server and a number of rounds: context-servers hummingbird|nio ROUNDS")
            exit(64)
        }
        InstrumentationSystem.bootstrap(TraceParent())
        let isHummingbird = arguments[1] == "hummingbird"
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let reports = Mutex<[StallReport]>([])
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(100), reports: .none,
            sinks: [.closure { report in if report.state == .ended { reports.withLock { $0.append(report) } } }]
        )
        configuration.reportsEveryRepeat = true
        configuration.maximumReportsPerMinute = 10_000
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.eventLoops(of: group, label: "http"))
        try monitor.start()
        let port =
            try await isHummingbird
            ? HummingbirdServer.start(on: group, routes: requests) : NIOServer.start(on: group)
        Switching.start()

        // A thread of its own: a blocked pool must not keep the client from counting.
        let right = Mutex(0)
        let isOver = Mutex(false)
        let begin = ContinuousClock.now
        Thread {
            // The first heartbeats run, and each connection's code has been used once.
            _ = Client.send(requests, round: 0, to: port)
            usleep(500_000)
            for round in 0..<rounds {
                let blocked = (round * 37 + 11) % requests
                reports.withLock { $0.removeAll() }
                Work.block(blocked)
                let answers = Client.send(requests, round: round, to: port)
                var waited = 0
                while reports.withLock({ $0.isEmpty }), waited < 5_000 {
                    usleep(1_000)
                    waited += 1
                }
                let found = reports.withLock { $0 }
                if answers == requests, isRight(found, blocked, round: round, hasTask: isHummingbird) {
                    right.withLock { $0 += 1 }
                } else {
                    print("round \(round): \(answers) answers, \(found.map(\.context))")
                }
            }
            isOver.withLock { $0 = true }
        }.start()
        while !isOver.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(20)) }
        let seconds = (ContinuousClock.now - begin) / .seconds(1)
        let count = right.withLock { $0 }
        print(
            "\(arguments[1]): \(count) of \(rounds) reports name the request, with \(requests) requests at a time and",
            "\(Int(Double(Switching.switches) / seconds)) other changes of context a second"
        )
        exit(count == rounds ? 0 : 1)
    }

    /// Whether there is one report, and it names the route, the trace, the span and the task of the request.
    private static func isRight(_ reports: [StallReport], _ number: Int, round: Int, hasTask: Bool) -> Bool {
        guard reports.count == 1, let context = reports[0].context else { return false }
        return context.label == "GET /item/\(number)" && context.traceID == Client.trace(number, round: round)
            && context.spanID == Client.span(number, round: round)
            && (!hasTask || (context.taskName == "item \(number)" && context.taskID != nil))
    }
}
