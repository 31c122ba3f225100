import StallReports

struct WatchControls: Equatable {
    enum Key: Equatable {
        case up, down, enter, back, sort, help, quit, other

        /// The key that a terminal sends as these bytes (xterm's control sequences); none mean that it is gone.
        init(_ bytes: [UInt8]) {
            switch bytes {
            case [], [UInt8(ascii: "q")], [UInt8(ascii: "Q")]: self = .quit
            case [0x0d], [0x0a]: self = .enter
            case Array("\u{1b}[A".utf8), Array("\u{1b}OA".utf8), [UInt8(ascii: "k")]: self = .up
            case Array("\u{1b}[B".utf8), Array("\u{1b}OB".utf8), [UInt8(ascii: "j")]: self = .down
            case [0x1b], [0x7f], [0x08]: self = .back
            case [UInt8(ascii: "s")], [UInt8(ascii: "S")]: self = .sort
            case [UInt8(ascii: "?")], [UInt8(ascii: "h")]: self = .help
            default: self = .other
            }
        }

        /// The keys whose bytes came together, as of a key that was held while the screen was drawn; quit for none.
        static func keys(_ bytes: [UInt8]) -> [Key] {
            guard !bytes.isEmpty else { return [.quit] }
            var keys: [Key] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let key = rest.prefix(length(of: rest))
                keys.append(Key(Array(key)))
                rest = rest.dropFirst(key.count)
            }
            return keys
        }

        /// The number of bytes of the first key: after ESC [ up to a byte from @ to ~ (ECMA-48), after ESC O one more.
        private static func length(of bytes: ArraySlice<UInt8>) -> Int {
            guard bytes.first == 0x1b else { return 1 }
            switch bytes.dropFirst().first {
            case UInt8(ascii: "O"): return 3
            case UInt8(ascii: "["):
                let last = bytes.dropFirst(2).firstIndex { 0x40...0x7e ~= $0 }
                return last.map { $0 - bytes.startIndex + 1 } ?? bytes.count
            default: return 2
            }
        }
    }

    enum Order: String {
        case newest, longest, count
    }

    var order = Order.newest
    /// The chosen group; `nil` for the first.
    var selected: WatchGroup.Key?
    var isOpen = false
    /// The lines of the opened stall that are scrolled out.
    var scrolled = 0
    var showsHelp = false
    var isDone = false

    func place(in groups: [WatchGroup]) -> Int? {
        groups.isEmpty ? nil : groups.firstIndex { $0.key == selected } ?? 0
    }

    func after(_ key: Key, _ groups: [WatchGroup]) -> WatchControls {
        var next = self
        switch key {
        case .quit: next.isDone = true
        case .help: next.showsHelp.toggle()
        case .back: (next.showsHelp, next.isOpen, next.scrolled) = (false, false, 0)
        case _ where showsHelp: next.showsHelp = false
        case .up where isOpen: next.scrolled = max(scrolled - 1, 0)
        case .down where isOpen: next.scrolled += 1
        case .enter where isOpen: (next.isOpen, next.scrolled) = (false, 0)
        case .enter:
            guard let place = place(in: groups) else { break }
            (next.selected, next.isOpen, next.scrolled) = (groups[place].key, true, 0)
        case .up, .down:
            guard let place = place(in: groups) else { break }
            next.selected = groups[min(max(place + (key == .up ? -1 : 1), 0), groups.count - 1)].key
        case .sort:
            next.order =
                switch order {
                case .newest: .longest
                case .longest: .count
                case .count: .newest
                }
        case .other: break
        }
        return next
    }
}

/// Stalls of a loop that have the same kind and function, or without a function the same cause.
struct WatchGroup: Equatable {
    struct Key: Hashable {
        var loop: String
        var kind: String
        var function: String?
        var cause: String?
    }

    let key: Key
    private(set) var count = 0
    /// The newest one; if that has ended and an older one lasts, as of requests with one label, that.
    private(set) var latest: ControlAnswer.StallSummary
    private(set) var longest = 0.0

    /// The groups of stalls that are given the newest first.
    static func groups(of stalls: [ControlAnswer.StallSummary], by order: WatchControls.Order) -> [WatchGroup] {
        var groups: [WatchGroup] = []
        var places: [Key: Int] = [:]
        for stall in stalls {
            let key = Key(
                loop: stall.loop, kind: stall.kind.rawValue, function: stall.function,
                cause: stall.function == nil ? stall.cause?.rawValue : nil)
            let place = places[key] ?? groups.count
            if place == groups.count {
                places[key] = place
                groups.append(WatchGroup(key: key, latest: stall))
            }
            if stall.isOngoing, !groups[place].latest.isOngoing { groups[place].latest = stall }
            groups[place].count += 1
            groups[place].longest = max(groups[place].longest, stall.durationMilliseconds)
        }
        // Groups with the same number stay in the order of their newest stalls: the sort is stable.
        switch order {
        case .newest: return groups
        case .longest: return groups.sorted { $0.longest > $1.longest }
        case .count: return groups.sorted { $0.count > $1.count }
        }
    }
}

/// The load of a loop in each of the last seconds.
struct LoadHistory: Equatable {
    static let seconds = 60

    private var values: [Int64: Double] = [:]

    /// Adds the share of the time from `start` to `end` that the loop has spent in turns; `nil` if it is not known.
    mutating func add(_ busy: Double?, from start: Timestamp?, to end: Timestamp) {
        let last = Self.second(end)
        let oldest = last - Int64(Self.seconds) + 1
        values = values.filter { oldest...last ~= $0.key }
        guard let busy else { return }
        let first = max(start.map { Self.second($0) + 1 } ?? last, oldest)
        for second in min(first, last)...last { values[second] = max(values[second] ?? 0, busy) }
    }

    /// The load of each second up to `end`, the newest last; `nil` where it is not known.
    func values(until end: Timestamp) -> [Double?] {
        let last = Self.second(end)
        return (0..<Int64(Self.seconds)).map { values[last - Int64(Self.seconds) + 1 + $0] }
    }

    private static func second(_ time: Timestamp) -> Int64 { time.microsecondsSince1970 / 1_000_000 }
}

enum Sparkline {
    private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// Draws values of 0 to 1 in at most `columns` columns: the greatest of those that share one, a blank if none is known.
    static func text(_ values: [Double?], columns: Int) -> String {
        guard !values.isEmpty, columns > 0 else { return "" }
        let share = (values.count + columns - 1) / columns
        // The newest value ends a full column.
        let first = values.count % share
        let starts = (first > 0 ? [0] : []) + Array(stride(from: first, to: values.count, by: share))
        return String(
            starts.map { start -> Character in
                let end = start < first ? first : start + share
                guard let value = values[start..<end].compactMap(\.self).max() else { return " " }
                return bars[min(Int(min(max(value, 0), 1) * 8), 7)]
            })
    }
}
