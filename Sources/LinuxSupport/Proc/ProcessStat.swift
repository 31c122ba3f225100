/// The fields of /proc/<pid>/stat that StallWatch uses (proc(5)).
package struct ProcessStat: Equatable {
    /// The state (field 3): one letter.
    package var state: String
    /// The id of the parent process (field 4).
    package var parent: Int32
    /// The number of threads (field 20).
    package var threads: Int
    /// The start time in clock ticks since the boot (field 22).
    package var startTicks: UInt64

    /// Parses the file's text; `nil` if it lacks a field.
    package init?(_ text: String) {
        var fields = ByteCursor(text)
        // The command's name in parentheses may contain any character: count fields from the last parenthesis.
        guard fields.skip(pastLast: UInt8(ascii: ")")), let state = fields.word(), let parent = fields.number() else {
            return nil
        }
        fields.skipWords(15)
        guard let threads = fields.number() else { return nil }
        fields.skipWords(1)
        guard let startTicks = fields.number() else { return nil }
        self.state = state
        self.parent = Int32(clamping: parent)
        self.threads = Int(clamping: threads)
        self.startTicks = startTicks
    }
}
