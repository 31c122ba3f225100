import Foundation
import Glibc
import NIOCore
import NIOHTTP1
import StallWatch
import Synchronization
import Tracing

/// The request that blocks its thread.
enum Work {
    /// How long it blocks, in microseconds.
    private static let duration: UInt32 = 250_000
    private static let blocked = Atomic<Int>(-1)

    /// Chooses the request that blocks next.
    static func block(_ number: Int) { blocked.store(number, ordering: .releasing) }

    /// Carries out a request.
    static func run(_ number: Int) {
        guard blocked.load(ordering: .acquiring) == number else { return }
        usleep(duration)
    }
}

/// The request whose continuation is not resumed until it is reported.
enum Leak {
    private struct State {
        var number = -1
        var continuation: CheckedContinuation<Void, Never>?
    }
    private static let state = Mutex(State())

    /// Chooses the request that gets stuck next.
    static func expect(in number: Int) {
        resume()
        state.withLock { $0.number = number }
    }

    /// Carries out a request.
    static func wait(in number: Int) async {
        guard state.withLock({ $0.number == number }) else { return }
        await withCheckedContinuation { continuation in
            state.withLock { $0 = State(continuation: continuation) }
        }
    }

    static func resume() {
        state.withLock { state in
            defer { state.continuation = nil }
            return state.continuation
        }?.resume()
    }
}

/// Other tasks and threads that change their contexts all the time.
enum Switching {
    private static let count = Atomic<Int>(0)

    /// The changes so far.
    static var switches: Int { count.load(ordering: .relaxed) }

    static func start() {
        Thread {
            while true {
                for number in 0..<5 {
                    withStallContext("thread \(number)") { _ = count.add(1, ordering: .relaxed) }
                }
                usleep(1_000)
            }
        }.start()
        Task(name: "other") {
            while true {
                for number in 0..<5 {
                    await StallContext.$current.withValue(StallContext("other \(number)")) {
                        await Task.yield()
                        _ = count.add(1, ordering: .relaxed)
                    }
                }
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
    }
}

/// Runs tasks on an event loop, in place of Swift's task pool.
final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Passes the header `traceparent` on, in place of a tracer.
struct TraceParent: Instrument {
    private enum Key: ServiceContextKey {
        typealias Value = String
    }

    private static let header = "traceparent"

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        context[Key.self] = extractor.extract(key: Self.header, from: carrier)
    }

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let value = context[Key.self] else { return }
        injector.inject(value, forKey: Self.header, into: &carrier)
    }
}

/// Reads the headers of NIO's requests.
private struct HeadersExtractor: Extractor {
    func extract(key: String, from headers: HTTPHeaders) -> String? { headers.first(name: key) }
}

/// Returns the context of the span that a request belongs to.
func span(of head: HTTPRequestHead) -> ServiceContext {
    var context = ServiceContext.topLevel
    InstrumentationSystem.instrument.extract(head.headers, into: &context, using: HeadersExtractor())
    return context
}
