import StallReports

/// The wait that a collector asks for in `Retry-After` (RFC 9110, section 10.2.3).
enum RetryAfter {
    /// The longest wait that is honored, so that a wrong value does not end shipping.
    static let longest = Duration.seconds(3_600)

    /// Returns the wait that the field asks for.
    ///
    /// - Parameters:
    ///   - field: A number of seconds, or a date.
    ///   - date: The answer's `Date`. The difference of two times of the collector does not depend on this machine's clock.
    ///   - now: This machine's time, for an answer without a date.
    /// - Returns: From 0 to ``longest``; `nil` if the field is missing or malformed.
    static func wait(_ field: String, date: String, now: Timestamp) -> Duration? {
        let text = field.trimmed
        if !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) {
            return Int64(text).map { min(.seconds($0), longest) } ?? longest
        }
        guard let end = time(text) else { return nil }
        let start = time(date.trimmed) ?? now
        let (microseconds, overflows) = end.microsecondsSince1970.subtractingReportingOverflow(
            start.microsecondsSince1970)
        guard !overflows else { return longest }
        return min(max(.microseconds(microseconds), .zero), longest)
    }

    /// A date such as `Sun, 06 Nov 1994 08:49:37 GMT`: the only form that is sent today (RFC 9110, section 5.6.7).
    static func time(_ text: String) -> Timestamp? {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])) else {
            return nil
        }
        let number = month + 1 < 10 ? "0\(month + 1)" : "\(month + 1)"
        return Timestamp("\(parts[3])-\(number)-\(parts[1])T\(parts[4]).000000Z")
    }
}
