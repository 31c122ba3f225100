import LinuxSupport
import StallReports

struct HealthVerdict: Equatable {
    /// The answer in one word; the raw values are the exit statuses.
    enum Status: Int32 {
        case healthy = 0
        /// A loop is stuck, or the watchdog does not run.
        case stuck = 1
        /// It cannot be known: the process does not run now, or has not come far enough.
        case cannotTell = 2
    }

    enum Process: Equatable {
        case running
        case paused(ProcessPause)
        /// It has ended, or the machine has been restarted.
        case ended
        /// It is in another namespace of process ids, or /proc hides it.
        case hidden
        /// It is in another namespace of process ids, and has written nothing since the tool's own began.
        case before
        /// It is of another machine, whose monotonic clock is another one.
        case otherHost
        /// Another one than the process with this id, whose health file it shares.
        case other(Int32)
    }

    var status: Status
    var sentence: String

    /// The age of a record in intervals, after which it is out of date.
    private static let intervals = 3.0
    /// The age that a record may have besides, in milliseconds: captures of a stall, a disk, a busy machine.
    private static let patience = 2_000.0

    /// Judges the record of a process; `now` is in milliseconds of CLOCK_MONOTONIC, `wall` the time of the wall clock.
    init(
        _ record: HealthRecord, at now: UInt64, _ process: Process,
        wall: Timestamp = Timestamp(wallClockNanoseconds: wallClockNow())
    ) {
        let pid = record.process.pid
        let wallAge = (Double(wall.microsecondsSince1970) - Double(record.checkedAt.microsecondsSince1970)) / 1_000
        let obstacle: String? =
            switch process {
            case .ended: "process \(pid), which wrote the record, has ended: start the program again"
            case .paused(.signal): "process \(pid) is stopped by a signal: continue it with kill -CONT \(pid)"
            case .paused(.debugger): "process \(pid) is stopped by a debugger: let it continue"
            case .paused(.frozen):
                "process \(pid) is frozen with its cgroup: thaw the cgroup, or unpause the container"
            case .other(let pid):
                "another process has written the health file of process \(pid): give each program a file of its own"
            case .before: "the record is older than this container, whose program may not have started yet"
            case .otherHost where abs(wallAge) > Self.longestAge(of: record):
                "the record was written on another machine, "
                    + (wallAge < 0 ? "in the future: " : "\(wallAge.duration) ago: ")
                    + "the process may not run"
            case .running, .hidden, .otherHost: nil
            }
        if let obstacle {
            status = .cannotTell
            sentence = obstacle
        } else if record.state != .stopped, process != .otherHost, Self.isStale(record, at: now) {
            status = .stuck
            sentence =
                "the monitor of process \(pid) has not looked for \(Self.age(of: record, at: now).duration): "
                + "the process does not run, or its watchdog or its disk is stuck"
        } else {
            status = [.ok, .off].contains(record.state) ? .healthy : record.state == .stalled ? .stuck : .cannotTell
            sentence = record.summary
        }
    }

    /// Whether a record is out of date, so that its states mean nothing; `now` is in milliseconds of CLOCK_MONOTONIC.
    static func isStale(_ record: HealthRecord, at now: UInt64) -> Bool {
        age(of: record, at: now) > longestAge(of: record)
    }

    private static func longestAge(of record: HealthRecord) -> Double {
        intervals * (record.intervalMilliseconds ?? 0) + patience
    }

    private static func age(of record: HealthRecord, at now: UInt64) -> Double {
        Double(now &- min(record.checkedAtMonotonicMilliseconds, now))
    }
}

extension HealthVerdict.Process {
    /// Finds the process of a record, by a given id also from outside of its container, where it has another id.
    static func of(_ record: HealthRecord, at target: HealthTarget) -> Self {
        let process = record.process
        let own = ProcessIdentity.current()
        // A given process is one of this machine; in a container of LXC or systemd-nspawn it sees another boot id.
        if case .file = target, let bootID = process.bootID, let own, own.bootID != bootID {
            // A file that hosts share may be another host's.
            return process.hostname ?? ProcessIdentity.ownHost == ProcessIdentity.ownHost ? .ended : .otherHost
        }
        var pid = process.pid
        if case .process(let given) = target {
            pid = given
        } else if process.pidNamespace == nil || ProcessIdentity.ownPIDNamespace != process.pidNamespace {
            let first = readSmallFile("/proc/1/stat").flatMap(ProcStat.init)
            return first.map { isOlder(record, than: $0.startedAt) } ?? false ? .before : .hidden
        }
        guard let running = ProcessIdentity(pid: pid) else { return InspectedProcess.isHidden(pid) ? .hidden : .ended }
        guard process.startTicks == nil || running.startTicks == process.startTicks else {
            return target == .process(pid) ? .other(pid) : .ended
        }
        return ProcessPause.of(pid).map { .paused($0) } ?? .running
    }

    /// Returns whether a record was written before a process began, in nanoseconds since the boot: a pod's folder
    /// outlives its containers, and one that has just ended leaves a record that is not old.
    static func isOlder(_ record: HealthRecord, than began: UInt64, now: ClockPair = ClockPair()) -> Bool {
        let age = now.monotonic - min(record.checkedAtMonotonicMilliseconds &* 1_000_000, now.monotonic)
        return age > now.boot - min(began, now.boot)
    }
}
