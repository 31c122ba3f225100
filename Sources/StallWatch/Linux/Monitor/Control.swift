import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension LiveEngine {
    func answer(_ request: ControlRequest) -> ControlAnswer {
        ControlAnswer(
            pid: getpid(), loops: loopStatistics, stalls: request == .watch ? latestStalls.current : nil
        )
    }

    func slowAnswer(_ request: ControlRequest) -> ControlAnswer {
        if request == .capabilities {
            var answer = ControlAnswer(pid: getpid())
            // Before the trials, which cost something, too.
            answer.cost = cost
            answer.capabilities = capabilities(loadsLibrary: false)
            answer.reportDirectory = reportDirectory
            return answer
        }
        if request == .proof {
            let proof = prove()
            var answer = ControlAnswer(pid: getpid(), error: proof.trials.isEmpty ? proof.summary : nil)
            answer.proof = proof
            return answer
        }
        do throws(StallWatchError) {
            if case .tasks = request {
                return try TaskInspection(configuration: configuration, redaction: taskRedaction).answer()
            }
            // The begin of the turn that a stall's report would have just begun to describe.
            let start = monotonicNow() &- LinuxSupport.nanoseconds(StallMonitor.Configuration.minimumThreshold)
            let report = try HangDump.take("main thread", since: start, directory: nil, like: configuration)
            let error = report == nil ? "the threads could not be captured in time: try again" : nil
            return ControlAnswer(pid: getpid(), report: report, tasks: TaskInspection.counts(), error: error)
        } catch {
            return ControlAnswer(pid: getpid(), error: error.description)
        }
    }
}

/// The control socket of a monitor: one thread serves all clients, and slow requests have threads of their own.
final class ControlService: Sendable {
    private let socket: ControlSocket
    private let thread: WorkerThread
    private let jobs: ControlJobs

    /// Opens the socket; later, if its file system does not answer in time, and then `whenRefused` gets the error.
    init(
        directory: FixedDirectory, answer: @escaping @Sendable (ControlRequest) -> ControlAnswer,
        slowAnswer: @escaping ControlJobs.Answer,
        whenRefused: @escaping @Sendable (SystemError) -> Void = { _ in }
    ) throws(StallWatchError) {
        let (socket, jobs, pid) = (ControlSocket(), ControlJobs(answer: slowAnswer), getpid())
        (self.socket, self.jobs) = (socket, jobs)
        let respond = { @Sendable (line: [UInt8]) -> LineServer.Response in
            do throws(ControlRequest.Fault) {
                let request = try ControlRequest(line)
                return request.isSlow
                    ? .later { jobs.start(request, for: $0) } : .bytes(answer(request).jsonLine())
            } catch {
                var refusal = ControlAnswer(pid: pid, error: error.message)
                refusal.isUnknownRequest = true
                return .bytes(refusal.jsonLine())
            }
        }
        let open = { @Sendable () throws(SystemError) -> LineServer in
            let boot = ProcessIdentity.ownBootID
            let name = ControlRequest.socketName(ofProcess: pid, boot: boot)
            UnixSocket.removeLeftovers(in: directory.reachablePath) { ControlRequest.isSocket($0, ofBoot: boot) }
            do throws(SystemError) {
                return try LineServer(path: "\(directory.reachablePath)/\(name)", answer: respond)
            } catch  where error.errno == ENOENT {
                // Without the directory, the socket cannot be created either.
                mkdir(pathBytes(directory.path), 0o700)
                directory.reopen()
                return try LineServer(path: "\(directory.path)/\(name)", answer: respond)
            }
        }
        thread = try throwing(.systemFailure) { () throws(SystemError) in
            try WorkerThread(name: "stallwatch-ctl") { socket.serve(open, whenRefused) }
        }
        try throwing(.systemFailure) { () throws(SystemError) in
            try socket.waitUntilOpen(until: monotonicNow() &+ FileCreation.patience)
        }
    }

    /// Removes the socket and ends the threads, soon.
    func close() {
        socket.end()
        jobs.close()
    }

    /// Waits for the threads, until a deadline in monotonic nanoseconds: a client may not take its answer.
    func finish(until deadline: UInt64) {
        jobs.finish(until: deadline)
        thread.finish(until: deadline)
    }
}

/// A socket that is opened, served and removed on one thread, as its file system may hang.
final class ControlSocket: Sendable {
    private struct State {
        var server: LineServer?
        var failure: SystemError?
        /// Whether ``waitUntilOpen(until:)`` has returned, and whether the monitor has ended.
        var (isLate, hasEnded) = (false, false)
    }
    private let state = Mutex(State())
    private let isOpen = Semaphore()

    /// Waits until a deadline in monotonic nanoseconds; throws if the socket cannot be opened.
    func waitUntilOpen(until deadline: UInt64) throws(SystemError) {
        isOpen.wait(until: deadline)
        let failure = state.withLock { state in
            state.isLate = true
            return state.failure
        }
        if let failure { throw failure }
    }

    /// Opens the socket and serves it until ``end()``; `whenRefused` gets an error after ``waitUntilOpen(until:)``.
    func serve(_ open: () throws(SystemError) -> LineServer, _ whenRefused: (SystemError) -> Void) {
        do throws(SystemError) {
            guard !state.withLock(\.hasEnded) else { return isOpen.post() }
            let server = try open()
            let hasEnded = state.withLock { state in
                state.server = server
                return state.hasEnded
            }
            isOpen.post()
            if !hasEnded { server.run() }
            server.remove()
        } catch {
            let isLate = state.withLock { state in
                state.failure = error
                return state.isLate && !state.hasEnded
            }
            isOpen.post()
            if isLate { whenRefused(error) }
        }
    }

    func end() {
        let server = state.withLock { state in
            state.hasEnded = true
            return state.server
        }
        server?.end()
    }
}

/// The slow requests to a control socket, each answered on a thread of its own, one of each kind at a time.
final class ControlJobs: Sendable {
    typealias Answer = @Sendable (ControlRequest) -> ControlAnswer

    /// Those of each kind of request, and whether the monitor has ended.
    private let workers = Mutex((byKind: [ControlRequest: Worker](), isClosed: false))
    private let answer: Answer

    init(answer: @escaping Answer) { self.answer = answer }

    /// Begins to answer a request; refuses it while another client's of its kind is being answered.
    func start(_ request: ControlRequest, for connection: LineConnection) {
        let refusal = workers.withLock { workers -> String? in
            guard !workers.isClosed else { return "the monitor has ended" }
            let worker = workers.byKind[request] ?? Worker(name: "stallwatch-ask", namesFunctions: true)
            workers.byKind[request] = worker
            do throws(SystemError) {
                // The worker can start again before its thread closes the connection, for which the client waits.
                let isStarted = try worker.start { [self] in connection.send(answer(request).jsonLine()) }
                return isStarted ? nil : "another client's \(request.rawValue) is not finished: try again when it is"
            } catch {
                return "\(error)"
            }
        }
        if let refusal { connection.send(ControlAnswer(pid: getpid(), error: refusal).jsonLine()) }
    }

    func close() { workers.withLock { $0.isClosed = true } }

    /// Waits for the threads, unless one of them calls it.
    func finish(until deadline: UInt64) {
        for worker in workers.withLock({ $0.byKind.values }) { worker.finish(until: deadline) }
    }
}

final class LatestStalls: Sendable {
    static let limit = 20

    private let stalls = Mutex<[ControlAnswer.StallSummary]>([])

    var current: [ControlAnswer.StallSummary] { stalls.withLock { $0 } }

    func store(_ report: StallReport) {
        let summary = ControlAnswer.StallSummary(report)
        stalls.withLock { stalls in
            if let known = stalls.firstIndex(where: { $0.id == report.id }) {
                stalls[known] = summary
            } else {
                stalls.insert(summary, at: stalls.firstIndex { $0.startedAt <= summary.startedAt } ?? stalls.count)
                // What still lasts is of interest, however old it is.
                let over = stalls.lastIndex { !$0.isOngoing } ?? stalls.count - 1
                if stalls.count > Self.limit { stalls.remove(at: over) }
            }
        }
    }
}
