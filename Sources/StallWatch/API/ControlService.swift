import Glibc
import LinuxSupport
import StallReports

/// The control socket of a monitor, with its threads.
///
/// One thread serves all clients. What takes long is answered by a thread of its own.
final class ControlService: Sendable {
    private let server: LineServer
    private let thread: WorkerThread
    private let jobs: ControlJobs

    /// Creates the socket and its thread.
    ///
    /// - Parameters:
    ///   - directory: The directory of the socket, which is created if it does not exist.
    ///   - answer: Answers a request on the socket's thread.
    ///   - slowAnswer: Answers a slow request on its own thread.
    /// - Throws: ``StallWatchError/Code/systemFailure`` if the directory, the socket or the thread cannot be created.
    init(
        directory: String, answer: @escaping @Sendable (ControlRequest) -> ControlAnswer,
        slowAnswer: @escaping ControlJobs.Answer
    ) throws(StallWatchError) {
        let jobs = ControlJobs(answer: slowAnswer)
        self.jobs = jobs
        let directory = try Self.created(directory)
        let pid = getpid()
        let path = "\(directory)/\(ControlRequest.socketName(ofProcess: pid))"
        (server, thread) = try throwing(.systemFailure) { () throws(SystemError) in
            let server = try LineServer(path: path) { line in
                do throws(ControlRequest.Fault) {
                    let request = try ControlRequest(line)
                    return request.isSlow
                        ? .later { jobs.start(request, for: $0) } : .bytes(answer(request).jsonLine())
                } catch {
                    return .bytes(ControlAnswer(pid: pid, error: error.message).jsonLine())
                }
            }
            do throws(SystemError) {
                return (server, try WorkerThread(name: "stallwatch-ctl") { server.run() })
            } catch {
                server.stop()
                throw error
            }
        }
    }

    /// Removes the socket, ends the profile in progress, and waits until other requests in progress are answered.
    func stop() {
        server.stop()
        jobs.stop()
        if thread.isCurrent { thread.detach() } else { thread.join() }
    }

    /// Creates a directory unless it exists, and returns its absolute path.
    private static func created(_ directory: String) throws(StallWatchError) -> String {
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            throw StallWatchError(
                .systemFailure,
                "the directory \(directory) cannot be created: choose another one for the control socket",
                errno: errno
            )
        }
        guard let absolute = absolutePath(directory) else {
            throw StallWatchError(
                .systemFailure, "the current directory is unknown: give the control socket an absolute path",
                errno: errno
            )
        }
        return absolute
    }
}
