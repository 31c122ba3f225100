import Foundation
import NIOPosix
import StallWatch
import Synchronization
import Tracing

/// Sends 100 requests at a time, of which one blocks, and counts the reports that name it.
///
/// With `leaks`, it sends 1,000 requests in each round, and one of them waits for a continuation that is not resumed before
/// its report. With `resolver`, one request at a time keeps a thread of the task pool.
///
///     context-servers hummingbird|nio|leaks|resolver ROUNDS
@main
struct Program {
    private static let requests = 100
    /// How often 100 requests are sent in a round with `leaks`.
    private static let batches = 10
    /// The time from which a request is overdue: longer than the block of ``Work``.
    private static let limit = Duration.milliseconds(500)

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let rounds = Int(arguments[2]),
            ["hummingbird", "nio", "leaks", "resolver"].contains(arguments[1])
        else {
            print("Give a server and a number of rounds: context-servers hummingbird|nio|leaks|resolver ROUNDS")
            exit(64)
        }
        InstrumentationSystem.bootstrap(TraceParent())
        if arguments[1] == "resolver" { exit(try await Resolver.run(rounds) ? 0 : 1) }
        let (isHummingbird, leaks) = (arguments[1] != "nio", arguments[1] == "leaks")
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let reports = Mutex<[StallReport]>([])
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(100),
            outputs: [
                .closure { report in
                    guard (report.kind == .overdue) == leaks, report.state == .ended else { return }
                    reports.withLock { $0.append(report) }
                }
            ])
        configuration.repeats.reportsEveryRepeat = true
        configuration.repeats.maximumReportsPerMinute = 10_000
        configuration.onEvent = { if case .began(let report) = $0, report.kind == .overdue { Leak.resume() } }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.eventLoops(of: group, label: "http"))
        try monitor.start()
        let port =
            try await isHummingbird
            ? HummingbirdServer.start(on: group, routes: requests, monitor: monitor, limit: limit)
            : NIOServer.start(on: group)
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
                var answers = 0
                if leaks {
                    for batch in 0..<batches {
                        if batch == round % batches { Leak.expect(in: blocked) }
                        answers += Client.send(requests, round: round, to: port)
                    }
                } else {
                    Work.block(blocked)
                    answers = Client.send(requests, round: round, to: port)
                }
                var waited = 0
                while reports.withLock({ $0.isEmpty }), waited < 5_000 {
                    usleep(1_000)
                    waited += 1
                }
                let found = reports.withLock { $0 }
                let isRight =
                    leaks ? isRightLeak(found, blocked) : isRight(found, blocked, round, hasTask: isHummingbird)
                if answers == (leaks ? batches * requests : requests), isRight {
                    right.withLock { $0 += 1 }
                } else {
                    print("round \(round): \(answers) answers, \(found.map { ($0.context, $0.cause?.summary) })")
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
    private static func isRight(_ reports: [StallReport], _ number: Int, _ round: Int, hasTask: Bool) -> Bool {
        guard reports.count == 1, let context = reports[0].context else { return false }
        return context.label == "GET /item/\(number)" && context.traceID == Client.trace(number, round: round)
            && context.spanID == Client.span(number, round: round)
            && (!hasTask || (context.taskName == "item \(number)" && context.taskID != nil))
    }

    /// Whether there is one report, and it names the route and the function that waits for the continuation.
    private static func isRightLeak(_ reports: [StallReport], _ number: Int) -> Bool {
        guard reports.count == 1, reports[0].cause?.kind == .continuation else { return false }
        return reports[0].context?.label == "GET /item/\(number)"
            && reports[0].cause?.summary.contains("Leak.wait") == true
    }
}
