import Glibc
import LinuxSupport
import StallReports

extension StallMonitor {
    /// Answers a request to the control socket, on its thread.
    ///
    /// Neither the watchdog nor a loop has to run for it.
    func answer(_ request: ControlRequest) -> ControlAnswer {
        switch request {
        case .state:
            return ControlAnswer(pid: getpid(), loops: loopStates(at: monotonicNow()))
        case .stacks:
            // The turn that a stall's report would have just begun to describe.
            let since = monotonicNow() &- LinuxSupport.nanoseconds(Configuration.minimumThreshold)
            do throws(StallWatchError) {
                let report = try HangDump.take("main thread", since: since, directory: nil, like: configuration)
                let error = report == nil ? "the threads could not be captured in time: try again" : nil
                return ControlAnswer(pid: getpid(), report: report, error: error)
            } catch {
                return ControlAnswer(pid: getpid(), error: error.description)
            }
        }
    }
}

extension LoopMonitor {
    /// Returns the duration of the current turn at `now`, in nanoseconds; `nil` while the loop waits.
    ///
    /// Reads atomics only, so any thread may call it.
    func turnDuration(at now: UInt64) -> UInt64? {
        let turn = recorder.snapshot()
        guard let began = turn.began, !turn.isGap, !source.isWaitingUnobserved() else { return nil }
        return now &- min(began, now)
    }
}
