import Glibc
import LinuxSupport
import StallReports

/// A live process that `watch` asks again and again.
struct WatchedProcess {
    private var client: ControlClient
    private let identity: ProcessIdentity?
    /// The process's name.
    let name: String
    /// The last answer's loops, by label.
    private var last: [String: ControlAnswer.LoopState] = [:]
    /// The last frame; `nil` before the first answer.
    private(set) var frame: WatchFrame?

    /// Finds the process's control socket.
    init(pid: Int32) {
        client = ControlClient(pid: pid)
        client.knownPath = client.socketPath
        identity = ProcessIdentity(pid: pid)
        let executable = readLink("/proc/\(pid)/exe")
        name = executable.map(fileName) ?? "process"
    }

    /// Asks for the present state.
    ///
    /// If the process gives no answer in time, the frame stays and says so.
    ///
    /// - Throws: ``CommandFailure`` if the process has ended, or can no longer be asked.
    mutating func update() throws(CommandFailure) {
        do throws(CommandFailure) {
            let answer = try client.ask(.watch)
            frame = Self.frame(of: answer, after: last, process: name, pid: client.pid, at: Self.now)
            last = Dictionary((answer.loops ?? []).map { ($0.label, $0) }) { first, _ in first }
        } catch {
            guard let identity, identity == ProcessIdentity(pid: client.pid) else {
                throw frame == nil ? error : CommandFailure(.noInput, "Process \(client.pid) has ended.")
            }
            guard error.status == .tryAgain, frame != nil else { throw error }
            frame?.problem = "no answer"
            frame?.time = Self.now
        }
    }

    private static var now: Timestamp { Timestamp(wallClockNanoseconds: wallClockNow()) }

    /// Returns the frame of an answer.
    ///
    /// - Parameters:
    ///   - answer: The answer.
    ///   - last: The loops of the answer before.
    ///   - process: The process's name.
    ///   - pid: The process's id.
    ///   - time: The time of the answer.
    /// - Returns: The frame.
    static func frame(
        of answer: ControlAnswer, after last: [String: ControlAnswer.LoopState], process: String, pid: Int32,
        at time: Timestamp
    ) -> WatchFrame {
        let loops = (answer.loops ?? []).map { loop in
            WatchFrame.Loop(state: loop, busy: last[loop.label].flatMap { busy(from: $0, to: loop) })
        }
        return WatchFrame(process: process, pid: pid, time: time, loops: loops, stalls: answer.stalls ?? [])
    }

    /// Returns the share of the time between two answers that a loop has spent in turns; `nil` if it is not known.
    static func busy(from first: ControlAnswer.LoopState, to second: ControlAnswer.LoopState) -> Double? {
        let time = second.watchedMilliseconds - first.watchedMilliseconds
        // A loop that is watched anew begins at 0.
        guard time > 0 else { return nil }
        return min(max((second.busyMilliseconds - first.busyMilliseconds) / time, 0), 1)
    }
}
