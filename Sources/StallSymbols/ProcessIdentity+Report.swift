package import LinuxSupport
package import StallReports

extension ProcessIdentity {
    /// The process that a report is about; `nil` if the report does not say enough.
    package init?(_ process: StallReport.ProcessDescription) {
        guard let startTicks = process.startTicks, let bootID = process.bootID else { return nil }
        self.init(pid: process.pid, startTicks: startTicks, bootID: bootID)
    }
}
