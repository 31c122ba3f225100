import TestSupport
import Testing

@testable import StallReports

@Suite struct CauseSentenceTests {
    func owner(
        _ thread: Int32, _ name: String?, waitsFor: StallReport.LockKind? = nil, label: String? = nil,
        isRunning: Bool = false
    ) -> StallReport.LockOwner {
        StallReport.LockOwner(
            thread: .init(id: thread, name: name), isRunning: isRunning, waitsFor: waitsFor, waitsForLabel: label
        )
    }

    func mutex(_ owners: [StallReport.LockOwner], reason: String? = nil, isDeadlock: Bool = false)
        -> StallReport.Lock
    {
        StallReport.Lock(
            kind: .pthreadMutex, function: "pthread_mutex_lock", isDeadlock: isDeadlock, owners: owners, reason: reason)
    }

    func sentence(_ kind: StallReport.CauseKind, _ lock: StallReport.Lock? = nil, function: String? = nil)
        -> String
    {
        StallReport.Cause(
            kind: kind, confidence: .certain, onCPUMilliseconds: 10, runQueueMilliseconds: 20.4,
            blockedMilliseconds: 469.6, uncertaintyMilliseconds: 0, majorFaults: 7, pagedFile: "/data/pages",
            function: function, lock: lock
        ).sentence
    }

    @Test func `one of several waits is not said to have taken all of the time`() {
        var cause = StallReport.Cause(
            kind: .lock, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 500,
            uncertaintyMilliseconds: 0, lock: mutex([owner(2, "saver")]))
        #expect(cause.describesMost)
        cause.waitMilliseconds = 180.4
        #expect(
            cause.sentence
                == "Blocked for 500 of 500 ms, about 180 ms of that in pthread_mutex_lock; the mutex is held by "
                + "thread 2 \"saver\", which is waiting.")
        #expect(!cause.describesMost)
        (cause.kind, cause.lock) = (.sleep, nil)
        cause.systemCall = .init(number: 230, name: "clock_nanosleep", target: "180 ms")
        #expect(cause.sentence == "Slept for 500 of 500 ms, about 180 ms of that in clock_nanosleep(180 ms).")
    }

    @Test func `a call in the kernel is named with its target and time`() {
        func sentence(_ call: StallReport.SystemCall?, kernelShare: Double?, callShare: Double? = 0.9) -> String {
            StallReport.Cause(
                kind: .cpu, confidence: .certain, onCPUMilliseconds: 1_100, runQueueMilliseconds: 10,
                blockedMilliseconds: 0, uncertaintyMilliseconds: 0, kernelShare: kernelShare, callShare: callShare,
                systemCall: call
            ).sentence
        }
        #expect(
            sentence(.init(number: 0, name: "read", target: "/data/catalogue.bin"), kernelShare: 1)
                == "In read(2) of /data/catalogue.bin for 1100 of 1110 ms, likely copying in the kernel."
        )
        #expect(
            sentence(.init(number: 0, name: "read", target: "/proc/7/smaps"), kernelShare: 1)
                == "In read(2) of /proc/7/smaps for 1100 of 1110 ms, running in the kernel."
        )
        #expect(
            sentence(.init(number: 11, name: "munmap"), kernelShare: 0.9)
                == "In munmap(2) for 990 of 1110 ms, running in the kernel."
        )
        #expect(sentence(.init(number: 0, name: "read"), kernelShare: 0.4) == "On CPU for 1100 of 1110 ms.")
        // The rest was in another call, as of a loop that reads and writes.
        for share in [0.89, 0.55, nil] {
            #expect(
                sentence(.init(number: 1, name: "write", target: "/data/copy"), kernelShare: 0.98, callShare: share)
                    == "On CPU for 1100 of 1110 ms, 98 % of it in the kernel.")
        }
    }

    @Test func `a wait for a signal is no sleep with a time limit`() {
        var cause = StallReport.Cause(
            kind: .syscall, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0,
            blockedMilliseconds: 300, uncertaintyMilliseconds: 0)
        cause.systemCall = .init(number: 7, name: "poll", target: "a signal")
        #expect(cause.sentence == "Blocked for 300 of 300 ms in poll, until a signal arrives.")
    }

    @Test func `a second wait is named with its part of the time`() {
        var cause = StallReport.Cause(
            kind: .cpu, confidence: .likely, onCPUMilliseconds: 300, runQueueMilliseconds: 0, blockedMilliseconds: 300,
            uncertaintyMilliseconds: 0)
        cause.otherCall = .init(number: 230, name: "clock_nanosleep", target: "300 ms")
        #expect(cause.sentence == "On CPU for 300 of 600 ms; blocked for 300 ms, in clock_nanosleep(300 ms).")
        var often = cause
        often.otherCall = .init(number: 230, name: "clock_nanosleep", target: "3 ms")
        often.voluntarySwitches = 100
        #expect(
            often.sentence
                == "On CPU for 300 of 600 ms; blocked for 300 ms, again and again, in clock_nanosleep(3 ms).")
        (cause.kind, cause.onCPUMilliseconds) = (.io, 0)
        cause.systemCall = .init(number: 0, name: "read", target: "/data/a")
        #expect(
            cause.sentence
                == "Blocked for 300 of 300 ms in read(/data/a); for a part of that in clock_nanosleep(300 ms).")
    }

    @Test func `a close that waits for its peer says so`() {
        var cause = StallReport.Cause(
            kind: .io, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 500,
            uncertaintyMilliseconds: 0)
        cause.systemCall = .init(number: 3, name: "close", target: "descriptor 4, which is no longer open")
        #expect(cause.sentence == "Blocked for 500 of 500 ms in close, which may wait until data is sent or written.")
        cause.waitChannel = "wait_woken"
        #expect(
            cause.sentence
                == "Blocked for 500 of 500 ms in close, which waits until the other end has confirmed the data "
                + "(SO_LINGER).")
    }

    @Test func `both parts of a turn that ran and waited for a CPU are named`() {
        func sentence(_ kind: StallReport.CauseKind, onCPU: Double, runQueue: Double) -> String {
            StallReport.Cause(
                kind: kind, confidence: .certain, onCPUMilliseconds: onCPU, runQueueMilliseconds: runQueue,
                blockedMilliseconds: 0, uncertaintyMilliseconds: 0
            ).sentence
        }
        #expect(sentence(.cpu, onCPU: 209, runQueue: 194) == "On CPU for 209 of 403 ms; waiting for a CPU for 194 ms.")
        #expect(sentence(.cpu, onCPU: 302, runQueue: 100) == "On CPU for 302 of 402 ms; waiting for a CPU for 100 ms.")
        #expect(sentence(.cpu, onCPU: 302, runQueue: 30) == "On CPU for 302 of 332 ms.")
        #expect(
            sentence(.cpuContention, onCPU: 194, runQueue: 209)
                == "Ready to run but without a CPU for 209 of 403 ms: other threads used the CPUs (whose is not known); "
                + "on CPU for 194 ms."
        )
    }

    @Test func otherCausesAreDescribedWithTheirNumbers() {
        #expect(sentence(.cpu) == "On CPU for 10 of 500 ms; blocked for 470 ms.")
        #expect(
            sentence(.cpuContention)
                == "Ready to run but without a CPU for 20 of 500 ms: other threads used the CPUs (whose is not known); "
                + "blocked for 470 ms."
        )
        #expect(sentence(.io, function: "fsync") == "Blocked for 470 of 500 ms in fsync.")
        #expect(sentence(.syscall) == "Blocked for 470 of 500 ms in a system call.")
        #expect(
            sentence(.paging)
                == "Waited for memory pages for 470 of 500 ms: 7 major page faults, likely reads from a disk, the last "
                + "one for /data/pages."
        )
    }

    /// Its wait may be a sleep, and its time in the kernel another call's.
    @Test func `a wait beside page faults is not said to be for pages`() {
        var cause = StallReport.Cause(
            kind: .paging, confidence: .likely, onCPUMilliseconds: 600, runQueueMilliseconds: 0,
            blockedMilliseconds: 400, uncertaintyMilliseconds: 0, kernelShare: 0.97, majorFaults: 1)
        cause.waitMilliseconds = 100
        #expect(
            cause.sentence
                == "Waited for memory pages for 100 of 1000 ms, and ran in the kernel for 582 ms: 1 major page fault, "
                + "likely a read from a disk; blocked otherwise for 300 ms.")
    }

    @Test func `a time without a CPU is not said to be a quota's beyond that of its cgroup`() {
        var cause = StallReport.Cause(
            kind: .throttled, confidence: .likely, onCPUMilliseconds: 200, runQueueMilliseconds: 800,
            blockedMilliseconds: 0, uncertaintyMilliseconds: 0)
        for (throttled, words) in [
            (720.0, "Ready to run but throttled for 800 of 1000 ms: its cgroup had used up its CPU quota."),
            (
                500,
                "Ready to run but without a CPU for 800 of 1000 ms; its cgroup had used up its CPU quota, and was stopped for "
                    + "500 ms (over all CPUs, not counting a period that had not ended)."
            ),
        ] {
            cause.throttledMilliseconds = throttled
            #expect(cause.sentence == words)
        }
    }

    @Test func `pages that no disk supplied are not said to come from one`() {
        let cause = StallReport.Cause(
            kind: .paging, confidence: .certain, onCPUMilliseconds: 1, runQueueMilliseconds: 0,
            blockedMilliseconds: 600, uncertaintyMilliseconds: 0, minorFaults: 1, voluntarySwitches: 1
        )
        #expect(
            cause.sentence
                == "Waited for memory pages for 600 of 601 ms, though no finished page fault was a major one."
        )
    }

    @Test func `many short sleeps are a loop that polls`() {
        var cause = StallReport.Cause(
            kind: .sleep, confidence: .certain, onCPUMilliseconds: 10, runQueueMilliseconds: 0,
            blockedMilliseconds: 390, uncertaintyMilliseconds: 0, voluntarySwitches: 380,
            systemCall: .init(number: 230, name: "clock_nanosleep", target: "1 ms")
        )
        #expect(
            cause.sentence
                == "Slept again and again, for 390 of 400 ms in all, in clock_nanosleep(1 ms): "
                + "it likely polls, or is called again and again."
        )
        cause.confidence = .possible
        #expect(cause.sentence == "Slept again and again, for 390 of 400 ms in all, in clock_nanosleep(1 ms).")
        cause.waitMilliseconds = 200
        #expect(
            cause.sentence
                == "Slept again and again, for 390 of 400 ms in all, about 200 ms of that, in clock_nanosleep(1 ms).")
        cause.waitMilliseconds = nil
        cause.systemCall?.target = "390 ms"
        #expect(cause.sentence == "Slept for 390 of 400 ms in clock_nanosleep(390 ms).")
    }

    @Test func `a CPU that the host took was not used by other threads`() {
        var cause = StallReport.Cause(
            kind: .cpuContention, confidence: .likely, onCPUMilliseconds: 200, runQueueMilliseconds: 800,
            blockedMilliseconds: 0, uncertaintyMilliseconds: 0)
        cause.stolenMilliseconds = 390
        #expect(cause.sentence.contains("other threads used the CPUs"))
        cause.stolenMilliseconds = 400
        #expect(
            cause.sentence
                == "Ready to run but without a CPU for 800 of 1000 ms: the host of the virtual machine did not run a "
                + "CPU of it for 400 ms; on CPU for 200 ms.")
    }

    @Test func `the threads that wanted the CPUs, too, are counted`() {
        func sentence(own: Int, others: Int, processors: Int) -> String {
            var cause = StallReport.Cause(
                kind: .cpuContention, confidence: .certain, onCPUMilliseconds: 20, runQueueMilliseconds: 780,
                blockedMilliseconds: 0, uncertaintyMilliseconds: 0)
            cause.competitors = .init(own: own, others: others, processors: processors)
            return cause.sentence
        }
        let start =
            "Ready to run but without a CPU for 780 of 800 ms: other threads used the CPUs (whenever it was seen "
        #expect(
            sentence(own: 3, others: 4, processors: 2)
                == start + "waiting, at least 3 of this process and 4 of others were ready, too, for 2 CPUs).")
        #expect(
            sentence(own: 0, others: 1, processors: 1)
                == start + "waiting, at least 1 of other processes were ready, too, for 1 CPU).")
        #expect(
            sentence(own: 9, others: 0, processors: 1)
                == start + "waiting, at least 9 of this process were ready, too, for 1 CPU).")
    }

    @Test func `a thread that may use some of the CPUs only has them counted`() {
        var cause = StallReport.Cause(
            kind: .cpuContention, confidence: .certain, onCPUMilliseconds: 20, runQueueMilliseconds: 780,
            blockedMilliseconds: 0, uncertaintyMilliseconds: 0)
        cause.usableProcessors = .init(usable: 1, online: 2)
        #expect(
            cause.sentence
                == "Ready to run but without a CPU for 780 of 800 ms: the thread may use 1 of 2 CPUs, where others ran "
                + "(whose is not known).")
    }

    @Test func `work in a call that also waits is part of its sentence`() {
        var cause = StallReport.Cause(
            kind: .io, confidence: .certain, onCPUMilliseconds: 237, runQueueMilliseconds: 50, blockedMilliseconds: 217,
            uncertaintyMilliseconds: 0, kernelShare: 0.9, callShare: 0.96,
            systemCall: .init(number: 74, name: "fsync", target: "/data/wal")
        )
        #expect(cause.sentence == "Blocked for 217 ms and on CPU for 237 of 504 ms in fsync(/data/wal).")
        cause.callShare = 0.75
        #expect(cause.sentence == "Blocked for 217 of 504 ms in fsync(/data/wal); on CPU for 237 ms.")
        (cause.callShare, cause.waitMilliseconds) = (0.96, 120)
        #expect(
            cause.sentence
                == "Blocked for 217 of 504 ms, about 120 ms of that in fsync(/data/wal); on CPU for 237 ms.")
    }
}
