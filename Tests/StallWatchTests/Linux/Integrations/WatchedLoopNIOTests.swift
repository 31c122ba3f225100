import TestSupport

#if NIO
    import Dispatch
    import Glibc
    import LinuxSupport
    import NIOCore
    import NIOPosix
    import StallReports
    import Synchronization
    import Testing

    @testable import StackCapture
    @testable import StallWatch

    @Suite struct EventLoopTests {
        private let recorder = TurnRecorder(alarm: WatchdogAlarm())

        private func withGroup(_ body: (MultiThreadedEventLoopGroup) async throws -> Void) async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            try await body(group)
            try await group.shutdownGracefully()
        }

        /// Waits until the thread waits in a call whose name begins so.
        private func isWaiting(_ thread: ThreadProbe, in call: String) -> Bool {
            eventually { thread.read()?.activity.call?.name.hasPrefix(call) == true }
        }

        @Test func aHeartbeatIsATurnOfTheLoopsThread() async throws {
            try await withGroup { group in
                let loop = group.next()
                let source: HeartbeatSource = .eventLoop(loop)
                #expect(source.kind == .eventLoop)
                let thread = try #require(try await loop.submit { ownThread() }.get())
                var time: UInt64 = 1_000
                for _ in 0..<3 {
                    #expect(source.beat(recorder, threshold: 100, at: time) != nil)
                    // Tasks run in the order of their submission.
                    try await loop.submit {}.get()
                    time += 100
                }
                #expect(recorder.snapshot().number == 2, "the first heartbeat only shows that the loop runs")
                #expect(source.target(of: recorder) == .thread(thread))
                source.remove()
            }
        }

        /// Each look finds the loop in its wait, once three heartbeats have shown where that is.
        @Test func `an idle loop is learned, and then gets no heartbeat`() async throws {
            try await withGroup { group in
                let loop = group.next()
                let source: HeartbeatSource = .eventLoop(loop)
                let id = try #require(try await loop.submit { ownThread() }.get())
                let thread = try ThreadProbe(thread: id)
                let end = endOfPatience
                // A heartbeat that runs late confirms nothing, so a busy machine needs more of them.
                var turns: UInt64 = .max
                while recorder.snapshot().number != turns, monotonicNow() < end {
                    turns = recorder.snapshot().number
                    _ = source.beat(recorder, threshold: 100, at: monotonicNow())
                    try await loop.submit {}.get()
                    try #require(isWaiting(thread, in: "epoll"))
                    if turns == 0 { turns = .max }
                }
                #expect(recorder.snapshot().number == turns)
                for _ in 0..<10 { _ = source.beat(recorder, threshold: 100, at: monotonicNow()) }
                #expect(recorder.snapshot().number == turns)
                // A timer does not end the wait without an end.
                let isDue = loop.scheduleTask(in: .seconds(60)) {}
                // The loop's thread takes the timer over in a turn of its own.
                try await loop.submit {}.get()
                try #require(isWaiting(thread, in: "epoll"))
                _ = source.beat(recorder, threshold: 100, at: monotonicNow())
                #expect(recorder.snapshot().number == turns)
                isDue.cancel()
                // While the loop runs something, it is not idle.
                let gate = Semaphore()
                loop.execute { gate.wait() }
                try #require(isWaiting(thread, in: "futex"))
                let time = monotonicNow()
                _ = source.beat(recorder, threshold: 100, at: time)
                #expect(recorder.snapshot().began == time)
                gate.post()
                source.remove()
            }
        }

        @Test func aLoopThatIsShutDownReceivesNoHeartbeat() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let source: HeartbeatSource = .eventLoop(group.next())
            #expect(source.beat(recorder, threshold: 100, at: 1_000) != nil)
            try await group.shutdownGracefully()
            #expect(recorder.lastThread != nil, "the heartbeat sent before the shutdown has run")
            #expect(source.beat(recorder, threshold: 100, at: 2_000) == nil)
            #expect(recorder.snapshot().began == nil)
            source.remove()
        }

        /// An event loop of a program's own: `execute` holds other threads than the test's until ``gate`` is posted.
        private final class OwnLoop: EventLoop {
            let callers = Collected<Int32>()
            let gate = Semaphore()
            private let loop: any EventLoop
            private let test: Int32

            init(_ loop: any EventLoop, test: Int32) { (self.loop, self.test) = (loop, test) }

            var inEventLoop: Bool { loop.inEventLoop }

            private func note() { callers.add(ownThread() ?? 0) }

            func execute(_ task: @escaping @Sendable () -> Void) {
                note()
                if ownThread() != test { gate.wait() }
                loop.execute(task)
            }

            func scheduleTask<T>(deadline: NIODeadline, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
                note()
                return loop.scheduleTask(deadline: deadline, task)
            }

            func scheduleTask<T>(in time: TimeAmount, _ task: @escaping @Sendable () throws -> T) -> Scheduled<T> {
                loop.scheduleTask(in: time, task)
            }

            /// The end of the group cancels it.
            func cancelScheduledCallback(_ scheduledCallback: NIOScheduledCallback) { note() }

            func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
                loop.shutdownGracefully(queue: queue, callback)
            }
        }

        /// SwiftNIO may rename the type, and all of its loops would be called on a thread of the monitor.
        @Test func `an event loop of SwiftNIO's own is known`() async throws {
            try await withGroup { group in
                #expect(HeartbeatSource.isOfSwiftNIO(group.next()))
                #expect(!HeartbeatSource.isOfSwiftNIO(OwnLoop(group.next(), test: 0)))
            }
        }

        /// It may hold its caller.
        @Test func `a program's own event loop is called on a thread of its own`() async throws {
            try await withGroup { group in
                let own = try #require(ownThread())
                let loop = OwnLoop(group.next(), test: own)
                let source: HeartbeatSource = .eventLoop(loop)
                _ = source.beat(recorder, threshold: 100, at: 1_000)
                // The callback that tells the loop's end, and the heartbeat.
                try #require(eventually { loop.callers.all.count == 2 })
                try #require(!loop.callers.all.contains(own))
                #expect(!source.isKnownToRun)
                loop.gate.post()
                let isLate = eventually {
                    _ = source.beat(recorder, threshold: 100, at: monotonicNow())
                    return recorder.snapshot().began != nil
                }
                #expect(isLate, "the heartbeat is late while the loop holds its caller")
                #expect(eventually { loop.callers.all.count == 3 })
                source.remove()
                loop.gate.post()
                #expect(eventually { loop.callers.all.count == 4 }, "the callback is cancelled")
                #expect(Set(loop.callers.all).count == 1)
            }
        }

        @Test func everyLoopOfAGroupIsWatched() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 3)
            let loops = try WatchedLoop.eventLoops(of: group, label: "nio")
                .makeMonitors(threshold: 1_000_000, alarm: WatchdogAlarm())
            #expect(loops.count == 3)
            #expect(loops.allSatisfy { $0.label == "nio" })
            for loop in loops { loop.source.remove() }
            try await group.shutdownGracefully()
        }
    }

    @Suite final class ThreadPoolTests {
        private let recorder = TurnRecorder(alarm: WatchdogAlarm())
        private var time: UInt64 = 1_000

        /// Keeps a thread of a pool until ``gate`` is posted.
        private struct Kept {
            let thread: Int32
            let gate = Semaphore()

            init(_ pool: NIOThreadPool) throws {
                let (gate, found) = (gate, Found())
                pool.submit { _ in
                    found.thread.store(ownThread() ?? 0, ordering: .releasing)
                    gate.wait()
                }
                try #require(eventually { found.thread.load(ordering: .acquiring) != 0 })
                thread = found.thread.load(ordering: .acquiring)
            }
        }

        private final class Found: Sendable {
            let thread = Atomic<Int32>(0)
        }

        /// Sends heartbeats until `isDone`.
        private func beat(_ source: HeartbeatSource, until isDone: () -> Bool) -> Bool {
            eventually {
                time += 100
                _ = source.beat(recorder, threshold: 100, at: time)
                return isDone()
            }
        }

        private func threads(_ source: HeartbeatSource) -> Set<Int32> {
            Set(source.target(of: recorder).knownThreads ?? [])
        }

        @Test func `a pool's threads are known once each has run a heartbeat`() async throws {
            let pool = NIOThreadPool(numberOfThreads: 2)
            pool.start()
            let source: HeartbeatSource = try #require(.threadPool(pool))
            #expect(source.kind == .threadPool && source.width == 2)
            let first = try Kept(pool)
            #expect(beat(source) { !threads(source).isEmpty })
            let second = try #require(threads(source).first)
            #expect(threads(source) == [second] && second != first.thread)
            // All threads are busy: the next heartbeat waits, and its turn lasts.
            let other = try Kept(pool)
            #expect(other.thread == second)
            #expect(beat(source) { recorder.snapshot().began != nil })
            #expect(!source.isWaitingUnobserved())
            // Only the first one runs it now.
            first.gate.post()
            #expect(eventually { recorder.snapshot().began == nil })
            #expect(beat(source) { threads(source) == [first.thread, second] })
            other.gate.post()
            try await pool.shutdownGracefully()
        }

        @Test func `a pool that shuts down is not late`() async throws {
            let pool = NIOThreadPool(numberOfThreads: 1)
            pool.start()
            let source: HeartbeatSource = try #require(.threadPool(pool))
            #expect(beat(source) { source.isKnownToRun })
            let kept = try Kept(pool)
            #expect(beat(source) { recorder.snapshot().began != nil })
            pool.shutdownGracefully { _ in }
            // What waits in the pool is cancelled, while its thread is still busy.
            #expect(eventually { recorder.snapshot().began == nil })
            #expect(source.isUnneeded())
            #expect(source.beat(recorder, threshold: 100, at: 1_000_000) == nil)
            kept.gate.post()
        }

        @Test func `a pool that does not run is refused`() {
            let pool = NIOThreadPool(numberOfThreads: 1)
            let loop = WatchedLoop.threadPool(pool, label: "files")
            #expect {
                try loop.makeMonitors(threshold: 1_000_000, alarm: WatchdogAlarm())
            } throws: { error in
                "\(error)".contains("the thread pool of files does not run: call its start() first")
            }
        }
    }
#endif
