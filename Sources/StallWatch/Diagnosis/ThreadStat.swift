import LinuxSupport

/// Fields 3, 10, 12, 14, 15 and 39 of /proc/<pid>/stat (proc(5)).
struct ThreadStat: Equatable {
    var state: UInt8
    var minorFaults: UInt64
    var majorFaults: UInt64
    var userTicks: UInt64
    var systemTicks: UInt64
    var processor: Int32?

    init?(_ cursor: ByteCursor) {
        var cursor = cursor
        // The command name is in parentheses and may contain any character: count fields from the last parenthesis.
        guard cursor.skip(pastLast: UInt8(ascii: ")")), let state = cursor.next else { return nil }
        self.state = state
        cursor.skipWords(7)
        guard let minor = cursor.number() else { return nil }
        cursor.skipWords(1)
        guard let major = cursor.number() else { return nil }
        cursor.skipWords(1)
        guard let user = cursor.number(), let system = cursor.number() else { return nil }
        (minorFaults, majorFaults, userTicks, systemTicks) = (minor, major, user, system)
        cursor.skipWords(23)
        processor = cursor.number().flatMap(Int32.init(exactly:))
    }
}
