import StallReports

extension Timestamp {
    /// Hours, minutes and seconds (UTC).
    var timeOfDay: String {
        // 2026-11-21T08:00:00.123456Z
        let text = description
        guard let t = text.firstIndex(of: "T") else { return text }
        return String(text[text.index(after: t)...].prefix(8))
    }
}
