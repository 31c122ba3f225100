import Glibc
import LinuxSupport
import StackCapture
import StallReports

extension StallMonitor {
    /// Answers a request to the control socket, on its thread.
    ///
    /// Neither the watchdog nor a loop has to run for it.
    func answer(_ request: ControlRequest) -> ControlAnswer {
        ControlAnswer(
            pid: getpid(), loops: loopStates(at: monotonicNow()), stalls: request == .watch ? latestStalls.current : nil
        )
    }

    /// Answers a slow request to the control socket, on a thread of its own.
    func answer(_ request: ControlRequest, _ job: ControlJob) -> ControlAnswer {
        do throws(StallWatchError) {
            if case .profile(let plan) = request { return try profile(plan, job) }
            let report = try HangDump.take("main thread", since: dumpStart, directory: nil, like: configuration)
            let error = report == nil ? "the threads could not be captured in time: try again" : nil
            return ControlAnswer(pid: getpid(), report: report, error: error)
        } catch {
            return ControlAnswer(pid: getpid(), error: error.description)
        }
    }

    /// The begin of the turn that a stall's report would have just begun to describe, in monotonic nanoseconds.
    private var dumpStart: UInt64 {
        monotonicNow() &- LinuxSupport.nanoseconds(Configuration.minimumThreshold)
    }

    private func profile(_ plan: ProfilePlan, _ job: ControlJob) throws(StallWatchError) -> ControlAnswer {
        CUnwindEngine.requestShortSlice()
        let capturer = try throwing(.systemFailure) { () throws(SystemError) in
            // A signal could end a call of the loop's thread, so a profile sends none.
            ThreadCapture(engine: try CUnwindEngine(), maySignal: false)
        }
        var profiler = LoopProfiler(loops: watchedLoops, capturer: capturer, plan: plan, inApp: configuration.inApp)
        let isWhole = profiler.run { job.isOver(waitingUntil: $0) }
        guard isWhole else { return ControlAnswer(pid: getpid(), error: "the monitor has ended") }
        let reports = ProfileReports(
            process: .current(), metadata: configuration.metadata,
            symbolication: .inProcess(configuration.symbolication, inApp: configuration.inApp),
            pathStyle: configuration.pathStyle, redact: configuration.redact
        )
        return ControlAnswer(pid: getpid(), profile: reports.answer(of: profiler))
    }
}
