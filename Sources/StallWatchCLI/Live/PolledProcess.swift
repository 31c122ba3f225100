import Glibc
import LinuxSupport
import StallReports

struct PolledProcess {
    private var client: ControlClient
    let tasks: WatchedTasks
    private let identity: ProcessIdentity?
    let name: String
    /// The last frame; `nil` before the first answer.
    private(set) var frame: WatchFrame?
    private var histories: [String: LoadHistory] = [:]
    /// The most stalls that are remembered after the monitor no longer lists them.
    private static let mostEarlier = 1_000

    init(pid: Int32) {
        client = ControlClient(pid: pid)
        client.knownPath = client.socketPath
        tasks = WatchedTasks(of: client)
        identity = ProcessIdentity(pid: pid)
        name = readLink("/proc/\(pid)/exe").map(fileName) ?? "process"
    }

    /// Throws if the process has ended, or cannot be asked; without an answer in time, the frame stays and says so.
    mutating func update() throws(CommandFailure) {
        do throws(CommandFailure) {
            let answer = try client.answer(to: .watch)
            let now = Timestamp(wallClockNanoseconds: wallClockNow())
            let last = Dictionary((frame?.loops ?? []).map { ($0.state.label, $0.state) }) { first, _ in first }
            let loops = (answer.loops ?? []).map { loop in
                let busy = Self.busy(from: last[loop.label], to: loop)
                histories[loop.label, default: .init()].add(busy, from: frame?.time, to: now)
                let history = histories[loop.label]?.values(until: now) ?? []
                return WatchFrame.LoopRow(state: loop, busy: busy, history: history)
            }
            let stalls = answer.stalls ?? []
            frame = WatchFrame(
                process: name, pid: client.pid, time: now, loops: loops, stalls: stalls,
                earlier: Self.earlier((frame?.stalls ?? []) + (frame?.earlier ?? []), than: stalls),
                tasks: tasks.summary)
        } catch {
            guard let identity, identity == ProcessIdentity(pid: client.pid) else {
                throw frame == nil ? error : CommandFailure(.nothing, "Process \(client.pid) has ended.")
            }
            guard error.status == .tryAgain, frame != nil else { throw error }
            frame?.problem = "no answer"
            frame?.time = Timestamp(wallClockNanoseconds: wallClockNow())
        }
    }

    /// The stalls of earlier answers that the latest one no longer has, the newest first.
    static func earlier(
        _ known: [ControlAnswer.StallSummary], than latest: [ControlAnswer.StallSummary]
    ) -> [ControlAnswer.StallSummary] {
        let ids = Set(latest.map(\.id))
        return known.filter { !ids.contains($0.id) }.prefix(mostEarlier).map { stall in
            var stall = stall
            stall.isOngoing = false
            return stall
        }
    }

    /// The report with this id, in the folder named stalls of the process or of the tool; `nil` if it is in neither.
    func report(_ id: String) -> (report: StallReport, origin: ReportOrigin)? {
        for folder in ["/proc/\(client.pid)/cwd/\(ReportFiles.standardFolder)", ReportFiles.standardFolder] {
            // The latest of equal stalls that was not reported has a file of its own.
            let endings = [".json", StallReport.newestSuffix].map { "-\(id.suffix(12))" + $0 }
            for entry in directoryEntries(folder) ?? []
            where StallReport.isFileName(entry.name) && endings.contains(where: entry.name.hasSuffix) {
                let path = "\(folder)/\(entry.name)"
                guard let bytes = try? FileReader.contents(of: path), let report = try? StallReport(json: bytes),
                    report.id == id
                else { continue }
                return (report, ReportOrigin(path: path))
            }
        }
        return nil
    }

    /// Returns the share of the time between two answers that a loop has spent in turns; `nil` if it is not known.
    static func busy(from first: LoopStatistics?, to second: LoopStatistics) -> Double? {
        // A heartbeat's turns are its waits. A loop that is watched anew begins at 0.
        guard let first, second.utilization != nil, second.watchedTime > first.watchedTime else { return nil }
        func busyTime(_ loop: LoopStatistics) -> Duration { loop.busyTime + (loop.currentTurn ?? .zero) }
        return min(max((busyTime(second) - busyTime(first)) / (second.watchedTime - first.watchedTime), 0), 1)
    }
}
