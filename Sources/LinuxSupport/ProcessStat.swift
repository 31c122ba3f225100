/// Some fields of /proc/<pid>/stat (proc(5)).
package struct ProcessStat: Equatable {
    /// Field 3: one letter.
    package var state: String
    /// Field 20.
    package var threads: Int
    /// Field 22.
    package var startTicks: UInt64

    package init?(_ text: String) {
        var fields = ByteCursor(text)
        // The command's name is in parentheses and may have any character in it: count from the last one.
        guard fields.skip(pastLast: UInt8(ascii: ")")), let state = fields.word() else { return nil }
        fields.skipWords(16)
        guard let threads = fields.number() else { return nil }
        fields.skipWords(1)
        guard let startTicks = fields.number() else { return nil }
        self.state = state
        self.threads = Int(clamping: threads)
        self.startTicks = startTicks
    }
}
