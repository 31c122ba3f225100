extension StallReport {
    /// The cause of a stall: how the thread spent the time, and the one cause that the rules conclude.
    ///
    /// The sum of `onCPUMilliseconds`, `runQueueMilliseconds` and `blockedMilliseconds` is the time from the
    /// beginning of the turn to the monitor's last observation of it.
    public struct Cause: Codable, Sendable, Equatable {
        /// The main use of the time.
        public var kind: CauseKind
        /// One sentence that states the cause with its numbers.
        public var summary: String = ""
        /// The confidence in ``kind``.
        public var confidence: Confidence
        package var onCPUMilliseconds: Double
        /// The time in which the thread was ready to run but had no CPU, in milliseconds.
        package var runQueueMilliseconds: Double
        package var blockedMilliseconds: Double
        /// The CPU and run-queue time, in milliseconds, that may lie before the turn: small unless the loop was busy.
        package var uncertaintyMilliseconds: Double
        /// The share of the CPU time spent in the kernel, 0 to 1; `nil` if that time was too short to tell.
        package var kernelShare: Double?
        /// The share of the CPU time in which ``systemCall`` ran, by the samples; `nil` if none saw that call run.
        package var callShare: Double?
        /// The number of page faults that read nothing.
        package var minorFaults: UInt64 = 0
        /// The number of page faults that the kernel counts as reads: from a disk, a file system or compressed memory.
        package var majorFaults: UInt64 = 0
        package var voluntarySwitches: UInt64 = 0
        /// The number of times that the scheduler preempted the thread; 0 if the system does not show it.
        package var involuntarySwitches: UInt64 = 0
        /// The time for which a CPU quota throttled the thread's cgroup, in milliseconds; `nil` if none did.
        ///
        /// At most the stall's duration. The kernel adds up all CPUs, so some of it may be other threads' time.
        package var throttledMilliseconds: Double?
        /// The time that the host of a virtual machine took from the most affected CPU (steal, proc_stat(5)) since a sample saw
        /// the thread ready to run, in milliseconds; `nil` if it took none, or the thread mostly had a CPU or was blocked.
        package var stolenMilliseconds: Double?
        package var competitors: Competitors?
        /// The CPUs that the thread may use, if they are fewer than the machine has (sched_setaffinity(2), a cpuset), and it
        /// mostly waited for one.
        package var usableProcessors: UsableProcessors?
        /// The file of the last page that the thread waited for; `nil` if unknown, or perf_event_open(2) is refused.
        package var pagedFile: String?
        package var systemCall: SystemCall?
        /// Another call, in which the thread was blocked for a third of the time or more; `nil` if there was none.
        package var otherCall: SystemCall?
        /// The part of ``blockedMilliseconds`` that the wait described here and those like it took, by the samples.
        ///
        /// `nil` for nine tenths or more: there was one wait, or many of the same kind for the same thing.
        package var waitMilliseconds: Double?
        /// The C library function in which the thread was, if no sample saw a system call.
        package var function: String?
        /// The kernel function in which the thread was blocked (/proc/<pid>/wchan, proc(5)).
        package var waitChannel: String?
        /// The kernel functions on the thread's stack, innermost first; `nil` unless they may be read (CAP_SYS_ADMIN).
        package var kernelStack: [String]?
        package var lock: Lock?
        package var pressure: Pressure?
    }

    /// The main use of a stall's time.
    public typealias CauseKind = Word<Cause>

    /// The confidence in a cause.
    public typealias Confidence = Word<ConfidenceWords>

    package struct SystemCall: Codable, Sendable, Equatable {
        package var number: Int
        package var name: String
        /// The call's target: a path, a socket's peer, a time or a process; `nil` if there is no name for it.
        package var target: String?
        /// The processes for which the call waited: a file lock's holder, the other end of a pipe or socket, a child.
        ///
        /// `nil` if the call waits for none of these, or ``missingPeersReason`` says why they are not known.
        package var peers: [Peer]?
        /// The number of processes beyond those in ``peers``; `nil` if there are none.
        package var omittedPeers: Int?
        package var missingPeersReason: String?
    }

    /// The least numbers of threads, of this process and others, that were ready whenever one was seen without a CPU.
    package struct Competitors: Codable, Sendable, Equatable {
        package var own: Int
        package var others: Int
        /// The number of CPUs.
        package var processors: Int

        package init(own: Int, others: Int, processors: Int) {
            (self.own, self.others, self.processors) = (own, others, processors)
        }

        var inWords: String {
            let counts = [(own, "this process"), (others, own > 0 ? "others" : "other processes")]
                .filter { $0.0 > 0 }.map { "\($0) of \($1)" }
            return " (whenever it was seen waiting, at least \(counts.joined(separator: " and ")) were ready, too, for "
                + "\(processors) CPU\(processors == 1 ? "" : "s"))"
        }
    }

    package struct UsableProcessors: Codable, Sendable, Equatable {
        package var usable: Int
        /// The number of CPUs that are online.
        package var online: Int

        package init(usable: Int, online: Int) { (self.usable, self.online) = (usable, online) }
    }

    /// The percentages of about ten seconds in which some task waited for a resource (`some avg10` of /proc/pressure).
    package struct Pressure: Codable, Sendable, Equatable {
        package var cpuSomeAvg10: Double?
        package var ioSomeAvg10: Double?
        package var memorySomeAvg10: Double?

        package init(cpuSomeAvg10: Double?, ioSomeAvg10: Double?, memorySomeAvg10: Double?) {
            (self.cpuSomeAvg10, self.ioSomeAvg10, self.memorySomeAvg10) = (cpuSomeAvg10, ioSomeAvg10, memorySomeAvg10)
        }
    }
}

extension StallReport.CauseKind {
    /// Running on a CPU, in the app's code or in the kernel.
    public static var cpu: Self { Self(rawValue: "cpu") }
    /// Waiting for a lock, a semaphore or a queue.
    public static var lock: Self { Self(rawValue: "lock") }
    /// Waiting for a file, a pipe, a socket or a device.
    public static var io: Self { Self(rawValue: "io") }
    /// Waiting for a time, as in `nanosleep`.
    public static var sleep: Self { Self(rawValue: "sleep") }
    /// Waiting in any other system call, such as `wait4`.
    public static var syscall: Self { Self(rawValue: "syscall") }
    /// Waiting for memory pages, mostly from a disk.
    public static var paging: Self { Self(rawValue: "paging") }
    /// Ready to run while other threads used the CPUs.
    public static var cpuContention: Self { Self(rawValue: "cpuContention") }
    /// Ready to run after the cgroup had used up its CPU quota.
    public static var throttled: Self { Self(rawValue: "throttled") }
    /// Waiting in or for a cycle of threads, none of which can continue.
    public static var deadlock: Self { Self(rawValue: "deadlock") }
    /// Waiting for a continuation, which some code has to resume; only of overdue operations.
    public static var continuation: Self { Self(rawValue: "continuation") }
    /// Not explained by anything that the monitor observed.
    public static var unknown: Self { Self(rawValue: "unknown") }

    package static var known: [Self] {
        [
            .cpu, .lock, .io, .sleep, .syscall, .paging, .cpuContention, .throttled, .deadlock, .continuation,
            .unknown,
        ]
    }
}

extension StallReport.Confidence {
    /// The observations rule out every other cause.
    public static var certain: Self { Self(rawValue: "certain") }
    /// The cause explains the observations best.
    public static var likely: Self { Self(rawValue: "likely") }
    /// The cause is one of several explanations.
    public static var possible: Self { Self(rawValue: "possible") }
}

extension StallReport.Cause {
    package init(
        kind: StallReport.CauseKind, confidence: StallReport.Confidence, onCPUMilliseconds: Double,
        runQueueMilliseconds: Double, blockedMilliseconds: Double, uncertaintyMilliseconds: Double
    ) {
        (self.kind, self.confidence, self.onCPUMilliseconds) = (kind, confidence, onCPUMilliseconds)
        (self.runQueueMilliseconds, self.blockedMilliseconds) = (runQueueMilliseconds, blockedMilliseconds)
        self.uncertaintyMilliseconds = uncertaintyMilliseconds
    }
}

extension StallReport.SystemCall {
    /// The target of a call that only a signal ends, as pause(2).
    package static let signal = "a signal"
    /// The target of a wait with a time limit for the events of an epoll instance that watches nothing.
    package static let emptySet = "an epoll set without descriptors"

    package init(number: Int, name: String, target: String?) {
        (self.number, self.name, self.target) = (number, name, target)
    }
}

extension StallReport {
    package struct Lock: Codable, Sendable, Equatable {
        package var kind: LockKind
        package var address: Address?
        package var function: String?
        /// What tells the lock from others: a dispatch queue's label, a stdio stream's name, or a task's id and name.
        package var label: String?
        /// How often a dispatch group was entered and not left; `nil` for other kinds, and if that is not known.
        package var entries: Int?
        /// Whether the wait also ends after a time, as that of `sem_timedwait`; `nil` if it does not.
        package var hasTimeLimit: Bool?
        /// Whether that time had passed when the wait ended; `nil` before the end, and if it is not known.
        package var endedByTimeLimit: Bool?
        /// Whether the owners wait for each other in a cycle.
        package var isDeadlock: Bool
        /// The owners, all confirmed by the monitor: the first owns this lock, the second what the first waits for.
        package var owners: [LockOwner]
        /// The reason why ``owners`` is empty; `nil` if it is not, and if ``Cause/systemCall`` names a file lock's holder.
        package var reason: String?
    }

    package typealias LockKind = Word<Lock>

    package struct LockOwner: Codable, Sendable, Equatable {
        package var thread: ThreadDescription
        /// The index of the thread's stack in ``StallReport/stacks``; `nil` if it could not be captured.
        package var stack: Int?
        /// Whether the thread was on a CPU or ready to run.
        package var isRunning: Bool
        package var systemCall: SystemCall?
        package var waitsFor: LockKind?
        package var waitsForAddress: Address?
        package var waitsForLabel: String?
        /// How the thread spent the time between the first and the last time that it was seen to hold the lock.
        ///
        /// `nil` for other owners than the last one, and if the system does not show it.
        package var time: OwnerTime?
        package var priorityInversion: PriorityInversion?
    }

    /// How the owner of a lock spent the time for which it was observed, in milliseconds.
    package struct OwnerTime: Codable, Sendable, Equatable {
        /// The share of the observed time from which the wait for a CPU is what the owner did.
        package static let starvedShare = 0.5

        /// The observed time; the owner was blocked for the part that is neither of the other two.
        package var observedMilliseconds: Double
        package var onCPUMilliseconds: Double
        /// The time in which the owner was ready to run but had no CPU.
        package var runQueueMilliseconds: Double

        package var blockedMilliseconds: Double {
            max(observedMilliseconds - onCPUMilliseconds - runQueueMilliseconds, 0)
        }

        package init(observedMilliseconds: Double, onCPUMilliseconds: Double, runQueueMilliseconds: Double) {
            (self.observedMilliseconds, self.onCPUMilliseconds) = (observedMilliseconds, onCPUMilliseconds)
            self.runQueueMilliseconds = runQueueMilliseconds
        }
    }

    /// A thread waits for one of lower priority that gets no CPU.
    ///
    /// The owner has a greater nice value than the stalled thread, and it waited for a CPU for at least half of the time
    /// for which it was observed. libdispatch (Swift 6.3) gives the workers of the background and utility QoS such values.
    package struct PriorityInversion: Codable, Sendable, Equatable {
        package var nice: Int
        package var waiterNice: Int
        /// The label of the dispatch queue that the owner runs; `nil` if it is not known.
        package var queue: String?

        package init(nice: Int, waiterNice: Int, queue: String? = nil) {
            (self.nice, self.waiterNice, self.queue) = (nice, waiterNice, queue)
        }
    }
}

extension StallReport.LockKind {
    /// A `pthread_mutex_t`; also `NSLock`, `NSRecursiveLock` and `std::mutex`.
    package static var pthreadMutex: Self { Self(rawValue: "pthreadMutex") }
    package static var pthreadReadWriteLock: Self { Self(rawValue: "pthreadReadWriteLock") }
    /// A `Mutex` of Swift's Synchronization module.
    package static var swiftMutex: Self { Self(rawValue: "swiftMutex") }
    package static var dispatchUnfairLock: Self { Self(rawValue: "dispatchUnfairLock") }
    package static var dispatchQueue: Self { Self(rawValue: "dispatchQueue") }
    package static var dispatchOnce: Self { Self(rawValue: "dispatchOnce") }
    package static var threadJoin: Self { Self(rawValue: "threadJoin") }
    /// An initialization by `pthread_once`, `call_once` or `swift_once`.
    package static var once: Self { Self(rawValue: "once") }
    package static var semaphore: Self { Self(rawValue: "semaphore") }
    package static var dispatchSemaphore: Self { Self(rawValue: "dispatchSemaphore") }
    package static var dispatchGroup: Self { Self(rawValue: "dispatchGroup") }
    /// A `pthread_cond_t`; also `NSCondition`.
    package static var condition: Self { Self(rawValue: "condition") }
    package static var barrier: Self { Self(rawValue: "barrier") }
    /// The lock of a stdio stream: `stdin`, `stdout` or `stderr`.
    package static var stdio: Self { Self(rawValue: "stdio") }
    /// The dynamic linker's lock of its list of libraries: another thread is in `dlopen`, in an initializer of a library
    /// that it loads, or in `dl_iterate_phdr`.
    package static var dynamicLinker: Self { Self(rawValue: "dynamicLinker") }
    /// The lock of a Swift task's status, which the runtime holds while it calls the task's cancellation handlers.
    package static var swiftTaskStatus: Self { Self(rawValue: "swiftTaskStatus") }
    package static var file: Self { Self(rawValue: "file") }
    /// A futex of an unknown kind.
    package static var futex: Self { Self(rawValue: "futex") }
    package static var systemSemaphore: Self { Self(rawValue: "systemSemaphore") }
    /// A semaphore of semop(2) whose value has to become 0.
    package static var systemSemaphoreZero: Self { Self(rawValue: "systemSemaphoreZero") }
}

extension StallReport.Lock {
    package init(kind: StallReport.LockKind, isDeadlock: Bool, owners: [StallReport.LockOwner]) {
        (self.kind, self.isDeadlock, self.owners) = (kind, isDeadlock, owners)
    }
}

extension StallReport.LockOwner {
    package init(thread: StallReport.ThreadDescription, isRunning: Bool) {
        self.thread = thread
        self.isRunning = isRunning
    }
}

extension StallReport {
    /// The cause if its parts of the time were measured, and not estimated from few looks, as those of a pool and of an overdue
    /// operation are.
    package var timedCause: Cause? {
        kind == .overdue ? nil : cause.flatMap { $0.uncertaintyMilliseconds * 2 > durationMilliseconds ? nil : $0 }
    }
}

extension StallReport.Cause {
    /// Whether close(2) waits for the other end: without SO_LINGER (socket(7)), closing a connection does not.
    var lingers: Bool {
        systemCall?.name == "close" && ["wait_woken", "sk_stream_wait_close"].contains(waitChannel)
    }
}

// How often a thread slept, by the length of one sleep.
extension StallReport.Cause {
    /// Whether the thread slept in many short pieces, as a loop does that waits for a condition or a spin lock.
    package var polls: Bool { kind == .sleep && isRepeated(systemCall) }

    /// Whether the other call was a sleep in many short pieces.
    var repeatsOtherCall: Bool { isRepeated(otherCall) }

    private func isRepeated(_ call: StallReport.SystemCall?) -> Bool {
        call?.askedMilliseconds.map { $0 * 10 < blockedMilliseconds && voluntarySwitches > 10 } ?? false
    }

    /// How many sleeps of equal length the time was; `nil` for one, for many, and where that is not known.
    var sleeps: Int? {
        guard kind == .sleep, !polls, waitMilliseconds == nil, let each = systemCall?.askedMilliseconds, each > 0
        else { return nil }
        // What the looks missed may be the rest of the last one, and no sleep more.
        let missed = min(uncertaintyMilliseconds, each / 4)
        let count = ((blockedMilliseconds + missed) / each).rounded(.down)
        // The first one may have begun before the first reading.
        return 2...10 ~= count && voluntarySwitches >= 2 && Double(voluntarySwitches + 1) >= count ? Int(count) : nil
    }
}

extension StallReport.SystemCall {
    /// How long one call is to wait, as in `60 ms`; `nil` if it has another target.
    fileprivate var askedMilliseconds: Double? {
        guard let words = target?.split(separator: " "), words.count == 2, words[1] == "ms" else { return nil }
        return Double(words[0])
    }
}
