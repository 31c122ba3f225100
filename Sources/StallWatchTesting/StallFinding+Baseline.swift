import LinuxSupport
import StallReports

extension StallFinding {
    /// Returns the finding with what a baseline says about it: that it is excused, or was excused until a day.
    func excused(by baseline: StallBaseline?) -> StallFinding {
        guard let baseline else { return self }
        let today = CalendarDay(Timestamp(wallClockNanoseconds: wallClockNow()))
        var finding = self
        finding.isExcused = isExcused || baseline.excuses(report.fingerprint, on: today)
        finding.expired = expired ?? baseline.expired(report.fingerprint, on: today)?.expires
        return finding
    }
}
