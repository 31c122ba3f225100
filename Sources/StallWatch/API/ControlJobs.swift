import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// The slow requests to a control socket, each answered on a thread of its own, one of each kind at a time.
final class ControlJobs: Sendable {
    /// Answers a request, on its own thread.
    typealias Answer = @Sendable (ControlRequest, ControlJob) -> ControlAnswer

    private struct Running {
        let job: ControlJob
        let thread: WorkerThread
    }
    private struct State {
        /// The last job of each kind of request.
        var jobs: [String: Running] = [:]
        var isStopped = false
    }
    private let state = Mutex(State())
    private let answer: Answer

    init(answer: @escaping Answer) { self.answer = answer }

    /// Begins to answer a request; refuses it while another client's of its kind is being answered.
    func start(_ request: ControlRequest, for connection: LineConnection) {
        let refusal = state.withLock { state -> String? in
            if state.isStopped { return "the monitor has ended" }
            if let last = state.jobs[request.name] {
                guard last.job.isFinished else {
                    return "another client's \(request.name) is not finished: try again when it is"
                }
                // Its thread has nothing left to do, so this does not wait.
                last.thread.join()
                state.jobs[request.name] = nil
            }
            let job = ControlJob(connection)
            do throws(SystemError) {
                let thread = try WorkerThread(name: "stallwatch-ask") { [answer] in
                    let answer = answer(request, job)
                    let isNeeded = job.isCanceled || !job.isOver(waitingUntil: 0)
                    job.finish(isNeeded ? answer.jsonLine() : nil)
                }
                state.jobs[request.name] = Running(job: job, thread: thread)
                return nil
            } catch {
                return "\(error)"
            }
        }
        if let refusal { connection.send(ControlAnswer(pid: getpid(), error: refusal).jsonLine()) }
    }

    /// Ends all jobs, and waits until they have ended.
    func stop() {
        let jobs = state.withLock { state in
            defer { state.jobs = [:] }
            state.isStopped = true
            return state.jobs.values.map { $0 }
        }
        for running in jobs { running.job.cancel() }
        // A redaction may stop the monitor: its thread must not wait for itself.
        for running in jobs { if running.thread.isCurrent { running.thread.detach() } else { running.thread.join() } }
    }
}
