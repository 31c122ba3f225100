import LinuxSupport
import StallReports
import Glibc

/// A report that is ready to be sent.
struct ShippedReport: Sendable {
    var name: String
    var resource: OTLPResource
    /// The record as a message.
    var record: [UInt8]

    /// What a report's file is good for.
    enum Reading {
        case ready(ShippedReport)
        /// The stall goes on, or its final report has not been written.
        case ongoing(ReportSummary)
        /// The file is gone.
        case gone
        case unreadable(reason: String)
    }

    /// Reads a report's file.
    ///
    /// An ongoing stall whose process is gone counts as finished: no monitor may ever start there again and say so.
    ///
    /// - Parameters:
    ///   - name: The file's name.
    ///   - directory: Its directory.
    ///   - common: Attributes of every resource.
    /// - Returns: The report, or why there is none.
    static func read(_ name: String, in directory: String, common: OTLPAttributes) -> Reading {
        let path = directory + "/" + name
        let report: StallReport
        do throws(UnreadableReport) {
            let bytes = try FileReader.contents(of: path)
            do throws(StallWatchError) {
                report = try StallReport(jsonData: bytes)
            } catch {
                return .unreadable(reason: error.description)
            }
        } catch {
            return FileStatus(path: path) == nil ? .gone : .unreadable(reason: error.reason)
        }
        var isAbandoned = false
        if report.state == .ongoing {
            let summary = ReportSummary(report)
            isAbandoned = summary.processIsGone
            guard isAbandoned else { return .ongoing(summary) }
        }
        return .ready(
            ShippedReport(
                name: name, resource: OTLPResource(report, common: common),
                record: LogRecord(report, isAbandoned: isAbandoned).bytes()
            ))
    }
}
