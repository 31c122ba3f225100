extension StallReport {
    /// Why the turn took so long: where its time went to, and the one cause that the rules name.
    ///
    /// ``onCPUMilliseconds``, ``runQueueMilliseconds`` and ``blockedMilliseconds`` add up to the time from the turn's
    /// beginning to the report's last observation at it.
    public struct Cause: Codable, Sendable, Equatable {
        /// What the time went to.
        public var kind: CauseKind
        /// One sentence that says it with the numbers.
        public var summary: String
        /// How sure that is.
        public var confidence: Confidence
        /// Time on a CPU.
        public var onCPUMilliseconds: Double
        /// Time ready to run but without a CPU.
        public var runQueueMilliseconds: Double
        /// Time waiting for something.
        public var blockedMilliseconds: Double
        /// How much of the first two may belong to the time right before the turn.
        ///
        /// Large only for a loop that was busy before it stalled.
        public var uncertaintyMilliseconds: Double
        /// Of the CPU time, the part in the kernel, 0 to 1; `nil` if it was too short to tell.
        public var kernelShare: Double?
        /// Page faults that needed no disk.
        public var minorFaults: UInt64
        /// Page faults that waited for one.
        public var majorFaults: UInt64
        /// How often the thread went to wait.
        public var voluntarySwitches: UInt64
        /// How often its CPU was taken from it.
        public var involuntarySwitches: UInt64
        /// How long the thread's cgroup was held back by its CPU quota; `nil` if it was not.
        public var throttledMilliseconds: Double?
        /// The file that the last page came from that the thread waited for, where the kernel tells (perf_event_open(2)).
        public var pagedFile: String?
        /// The system call that it waited in.
        public var systemCall: SystemCall?
        /// The function of the C library that it was in, where no system call was seen.
        public var function: String?
        /// The kernel's function that it waited in.
        public var waitChannel: String?
        /// All of the kernel's functions, innermost first, where the process may read them (CAP_SYS_ADMIN).
        public var kernelStack: [String]?
        /// The lock that it waited for.
        public var lock: Lock?
        /// How busy the machine was; `nil` where the kernel does not tell.
        public var pressure: Pressure?

        package init(
            kind: CauseKind,
            summary: String,
            confidence: Confidence,
            onCPUMilliseconds: Double,
            runQueueMilliseconds: Double,
            blockedMilliseconds: Double,
            uncertaintyMilliseconds: Double,
            kernelShare: Double? = nil,
            minorFaults: UInt64,
            majorFaults: UInt64,
            voluntarySwitches: UInt64,
            involuntarySwitches: UInt64,
            throttledMilliseconds: Double? = nil,
            pagedFile: String? = nil,
            systemCall: SystemCall? = nil,
            function: String? = nil,
            waitChannel: String? = nil,
            kernelStack: [String]? = nil,
            lock: Lock? = nil,
            pressure: Pressure? = nil
        ) {
            self.kind = kind
            self.summary = summary
            self.confidence = confidence
            self.onCPUMilliseconds = onCPUMilliseconds
            self.runQueueMilliseconds = runQueueMilliseconds
            self.blockedMilliseconds = blockedMilliseconds
            self.uncertaintyMilliseconds = uncertaintyMilliseconds
            self.kernelShare = kernelShare
            self.minorFaults = minorFaults
            self.majorFaults = majorFaults
            self.voluntarySwitches = voluntarySwitches
            self.involuntarySwitches = involuntarySwitches
            self.throttledMilliseconds = throttledMilliseconds
            self.pagedFile = pagedFile
            self.systemCall = systemCall
            self.function = function
            self.waitChannel = waitChannel
            self.kernelStack = kernelStack
            self.lock = lock
            self.pressure = pressure
        }
    }

    /// What a stall's time went to.
    ///
    /// More may come.
    public struct CauseKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Computing, in the app's code or in the kernel.
        public static let cpu = CauseKind(rawValue: "cpu")
        /// Waiting for somebody to let go of a lock, a semaphore or a queue.
        public static let lock = CauseKind(rawValue: "lock")
        /// Waiting for data of a file, a pipe, a socket or a device.
        public static let io = CauseKind(rawValue: "io")
        /// Waiting for time to pass.
        public static let sleep = CauseKind(rawValue: "sleep")
        /// Waiting in any other system call, such as `wait4`.
        public static let syscall = CauseKind(rawValue: "syscall")
        /// Waiting for pages of memory to come from a disk.
        public static let paging = CauseKind(rawValue: "paging")
        /// Ready to run, while other threads had the CPUs.
        public static let cpuContention = CauseKind(rawValue: "cpuContention")
        /// Ready to run, while the cgroup's CPU quota was used up.
        public static let throttled = CauseKind(rawValue: "throttled")
        /// Waiting in a circle of threads, of which none can go on.
        public static let deadlock = CauseKind(rawValue: "deadlock")
        /// Nothing that was seen explains it.
        public static let unknown = CauseKind(rawValue: "unknown")

        /// The words above: all that this version writes.
        package static let known: Set<CauseKind> = [
            .cpu, .lock, .io, .sleep, .syscall, .paging, .cpuContention, .throttled, .deadlock, .unknown,
        ]
    }

    /// How sure a cause is.
    ///
    /// More may come.
    public struct Confidence: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// What was seen leaves nothing else.
        public static let certain = Confidence(rawValue: "certain")
        /// What was seen makes it the best explanation.
        public static let likely = Confidence(rawValue: "likely")
        /// One explanation of several.
        public static let possible = Confidence(rawValue: "possible")
    }

    /// A system call.
    public struct SystemCall: Codable, Sendable, Equatable {
        /// Its number on this architecture.
        public var number: Int
        /// Its name.
        public var name: String
        /// What it was on: a path, a socket's peer, a time, a process; `nil` if that has no name.
        public var target: String?

        package init(
            number: Int,
            name: String,
            target: String? = nil
        ) {
            self.number = number
            self.name = name
            self.target = target
        }
    }

    /// How much the machine's tasks were held up in the ten seconds before, in percent of the time.
    public struct Pressure: Codable, Sendable, Equatable {
        /// For want of a CPU.
        public var cpuSomeAvg10: Double?
        /// By input and output.
        public var ioSomeAvg10: Double?
        /// By a lack of memory.
        public var memorySomeAvg10: Double?

        package init(
            cpuSomeAvg10: Double? = nil,
            ioSomeAvg10: Double? = nil,
            memorySomeAvg10: Double? = nil
        ) {
            self.cpuSomeAvg10 = cpuSomeAvg10
            self.ioSomeAvg10 = ioSomeAvg10
            self.memorySomeAvg10 = memorySomeAvg10
        }
    }
}
