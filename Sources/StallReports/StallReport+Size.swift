extension StallReport {
    /// The most bytes of a report that is written: of a longer one, outer frames of the stacks are left out.
    package static let maximumWrittenBytes = 4 << 20

    /// The longest name of a function or symbol in a report, in bytes.
    package static let maximumNameBytes = 1_024

    /// Returns a name, or of one that is too long the beginning and a hash of the whole: it stays the only one of its kind.
    package static func bounded(_ name: String) -> String {
        guard name.utf8.count > maximumNameBytes else { return name }
        let end = "… [\(hexadecimal(Fingerprint.hash(name.utf8), width: 16))]"
        var cut = name.utf8.index(name.startIndex, offsetBy: maximumNameBytes - end.utf8.count)
        // Not within a character's bytes (RFC 3629: those after the first are 10xxxxxx).
        while name.utf8[cut] & 0xc0 == 0x80 { cut = name.utf8.index(before: cut) }
        return name[..<cut] + end
    }

    /// The numbers of frames that stacks are shortened to, one after the other.
    private static let shorterStacks = [64, 8, 0]

    /// Returns the report as JSON of at most `limit` bytes, if need be with less of its stacks.
    func json(isIndented: Bool, limit: Int = maximumWrittenBytes) -> [UInt8] {
        var (report, bytes) = (self, encodeJSON(self, isIndented: isIndented))
        for count in Self.shorterStacks where bytes.count > limit && fault == nil {
            report.shortenStacks(to: count)
            bytes = encodeJSON(report, isIndented: isIndented)
        }
        return bytes
    }

    /// Keeps the innermost frames, and says so.
    private mutating func shortenStacks(to count: Int) {
        let reason = "outer frames were left out: a report has at most \(Self.maximumWrittenBytes >> 20) MiB"
        for index in samples.indices where samples[index].stack.map({ stacks[$0].count > count }) == true {
            (samples[index].isComplete, samples[index].reason) = (false, reason)
        }
        for index in (otherThreads ?? []).indices
        where otherThreads?[index].stack.map({ stacks[$0].count > count }) == true {
            otherThreads?[index].reason = reason
        }
        var (kept, numbers) = ([Frame](), [Int: Int]())
        stacks = stacks.map { stack in
            stack.prefix(count).map { index in
                if let known = numbers[index] { return known }
                numbers[index] = kept.count
                kept.append(frames[index])
                return kept.count - 1
            }
        }
        frames = kept
    }
}
