import StallReports
import TextOutput

/// The page's data, with each text, function and stack once: 20,000 whole reports take half a gigabyte.
struct PageData {
    private var stacks = StackTable()
    private var strings = Numbered<String>()
    private var loops = Numbered<StallProfile.LoopIdentity>()
    private var metadata = Numbered<[String: String]>()
    private var excerpts: PageExcerpts
    /// The stalls; times are microseconds, and their beginnings are since 1970.
    private var stalls = ColumnTable()
    private var ids: [String] = []
    /// The stacks' shares of the stalls' time, those of one stall after another.
    private var shares = ColumnTable()
    private var details: [Detail: [(stall: String, value: JSONValue)]] = [:]
    /// The pages that the advice names, by the commands that print them: the reader may have no tool.
    private var pages: [String: String] = [:]
    var history = VersionHistory()
    private var groups = StallGroups()
    /// How each fingerprint changed, in the words of a comparison; `nil` for those of the history.
    var changes: [String: String]?
    /// How long the programs were watched; `nil` without rates, as in a comparison.
    var time: MonitoredTime?
    private let sides: [Side]
    private let link: String

    struct Side {
        var name: String
        var hours: Double
    }

    private enum Detail: String, CaseIterable { case locks, peers, threads, contexts, history }

    static let standardLink = "file://{file}"

    init(comparing sides: [Side] = [], sources: SourceFiles = SourceFiles(below: []), link: String = standardLink) {
        self.sides = sides
        self.link = link
        excerpts = PageExcerpts(files: sources)
    }

    /// The reports.
    var count: Int { ids.count }
    /// The stalls, with those that have no report of their own.
    private(set) var stallCount = 0

    mutating func add(_ report: StallReport, side: Int = 0) {
        addDetails(of: report)
        stallCount &+= report.repeats &+ 1
        var summary = ReportSummary(report)
        summary.explanation = report.explanation
        history.add(summary)
        groups.add(summary, ReportOrigin(path: ""))
        for share in stacks.add(report) {
            shares.append([("node", share.node), ("microseconds", share.microseconds)])
        }
        let culprit = report.culprit
        let place = culprit?.file.map { file in file + (culprit?.line.map { ":\($0)" } ?? "") } ?? culprit?.image
        let row: [ColumnTable.Cell] = [
            ("start", Int(report.startedAt.microsecondsSince1970)),
            ("duration", StallWeights.microseconds(report.durationMilliseconds)),
            ("threshold", StallWeights.microseconds(report.thresholdMilliseconds)),
            ("loop", loops.number(of: StallProfile.LoopIdentity(report))), ("kind", text(report.kind.rawValue)),
            ("state", text(report.state.rawValue)), ("callout", text(report.callout?.inWords)),
            ("fingerprint", text(report.fingerprint)), ("repeats", report.repeats),
            ("total", StallWeights.microseconds(report.totalMilliseconds)),
            ("greatest", StallWeights.microseconds(report.greatestMilliseconds)),
            ("culprit", text(culprit?.function)), ("place", text(place)),
            ("context", text(report.context?.name)), ("host", text(report.process.hostname)),
            ("unknown", text(culprit == nil ? report.missingCulpritReason : nil)),
            ("reasons", text(Self.reasons(of: report))),
            ("source", excerpts.number(of: culprit?.file, culprit?.line)),
            ("metadata", metadata.number(of: report.metadata)), ("side", side), ("sharesEnd", shares.count),
        ]
        stalls.append(row + explanation(of: report))
        ids.append(report.id)
    }

    private mutating func explanation(of report: StallReport) -> [ColumnTable.Cell] {
        let (cause, times, advice) = (report.cause, report.timedCause, report.advice)
        let kernel = cause?.kernelStack.flatMap { $0.isEmpty ? nil : $0.joined(separator: "\n") }
        if let advice, pages[advice.command] == nil, let page = CausePage.text(advice.topic) {
            pages[advice.command] = String(decoding: page, as: UTF8.self)
        }
        return [
            ("cause", text(report.causeWord)), ("summary", text(report.why)), ("heldUp", text(report.heldUpBy)),
            ("confidence", text(cause?.confidence.rawValue)), ("kernel", text(kernel)),
            ("lacksCPU", report.lacksCPU ? 1 : 0),
            ("onCPU", StallWeights.microseconds(times?.onCPUMilliseconds ?? 0)),
            ("runQueue", StallWeights.microseconds(times?.runQueueMilliseconds ?? 0)),
            ("blocked", StallWeights.microseconds(times?.blockedMilliseconds ?? 0)),
            ("waited", text(report.victimsInWords)),
            ("harm", report.harmMilliseconds.map { StallWeights.microseconds($0) }),
            ("advice", text(advice?.text)), ("advicePage", text(advice?.command)),
        ]
    }

    private mutating func text(_ text: String?) -> Int? { text.map { strings.number(of: $0) } }

    private mutating func addDetails(of report: StallReport) {
        let stall = String(count)
        if let lock = report.cause?.lock {
            details[.locks, default: []].append((stall, describe(lock, of: report)))
        }
        if let calls = report.cause?.callsWithPeers, !calls.isEmpty {
            let clauses = calls.flatMap { call in call.allPeersInWords.map { "\(call): \($0)" } }
            details[.peers, default: []].append((stall, .array(clauses.map { .string($0) })))
        }
        if let others = report.otherThreads, !others.isEmpty {
            let threads = others.map { describe($0, of: report) }
            details[.threads, default: []].append((stall, .array(threads)))
        }
        if let context = report.context {
            details[.contexts, default: []].append((stall, .string(context.inWords)))
        }
        if let history = report.history, history.loops.contains(where: { !$0.turns.isEmpty }) {
            details[.history, default: []].append((stall, Self.describe(history)))
        }
    }

    private static let maximumListedGroups = 100

    /// The groups with the most time as items of a list, for a browser that runs no scripts.
    var list: String {
        groups.sorted(by: .total).prefix(Self.maximumListedGroups).map { group in
            let finding = Finding(group)
            let place = finding.file.map { sourcePlace($0, finding.line) }
            let lines = finding.message.split(separator: "\n").map(String.init) + [place].compactMap(\.self)
            let title = "\(finding.title) (\(finding.cause))"
            return "<li><b>\(title.escapedForXML)</b>" + lines.map { "<br>\($0.escapedForXML)" }.joined() + "</li>\n"
        }.joined()
    }

    private static func reasons(of report: StallReport) -> String? {
        let all = report.samples.compactMap(\.reason)
        var different = Numbered<String>()
        for reason in all { _ = different.number(of: reason) }
        let lines = different.values.map { reason in "\(all.count { $0 == reason }) × \(reason)" }
        return lines.isEmpty ? nil : lines.joined(separator: "\n")
    }

    /// Locks are rare and structured, so they are not in columns.
    private mutating func describe(_ lock: StallReport.Lock, of report: StallReport) -> JSONValue {
        let owners = lock.owners.map { owner -> JSONValue in
            let source = report.frame(of: owner).flatMap { excerpts.number(of: $0.file, $0.line) }
            return [
                "thread": .optional(owner.thread.id), "name": .optional(owner.thread.name),
                "node": node(owner.stack, of: report), "doing": .string(owner.doing),
                "source": source.map(JSONValue.int) ?? .null,
            ]
        }
        return [
            "kind": .string(lock.kind.named(lock.label)), "function": .optional(lock.calledFunction),
            "isDeadlock": .bool(lock.isDeadlock), "reason": .optional(lock.reason), "owners": .array(owners),
        ]
    }

    /// The turns of each loop that had any, the stalled one first: begin and duration in microseconds, in turn.
    private static func describe(_ history: StallReport.History) -> JSONValue {
        let loops = history.loops.prefix(1) + history.loops.dropFirst().filter { !$0.turns.isEmpty }
        let values = loops.map { loop -> JSONValue in
            let times = loop.turns.flatMap { [$0.atMilliseconds, $0.durationMilliseconds] }
            return ["label": .string(loop.label), "turns": .ints(times.map { Int(($0 * 1_000).rounded()) })]
        }
        return ["window": .int(StallWeights.microseconds(history.windowMilliseconds)), "loops": .array(values)]
    }

    private mutating func describe(_ other: StallReport.OtherThread, of report: StallReport) -> JSONValue {
        [
            "thread": .optional(other.thread.id), "name": .optional(other.thread.name),
            "state": .optional(other.threadState?.rawValue), "node": node(other.stack, of: report),
            "call": .optional(other.systemCall?.description),
            "waitsFor": .optional(other.lock.map { $0.kind.named($0.label) }),
            "owner": .optional(other.lock?.owners.first?.thread.id),
            "isDeadlock": .bool(other.lock?.isDeadlock ?? false), "reason": .optional(other.reason),
        ]
    }

    private mutating func node(_ stack: Int?, of report: StallReport) -> JSONValue {
        guard let stack, report.stacks.indices.contains(stack) else { return .null }
        return .int(stacks.add(stack: stack, of: report))
    }

    /// The JSON that the page's scripts read, safe within a `<script>` element.
    mutating func json() -> [UInt8] {
        // Before the strings are written: they may add some.
        let functions = functionColumns()
        let sets = metadata.values.map { pairs in
            JSONValue.indices(
                pairs.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }.map { strings.number(of: $0) })
        }
        let begin = stalls.offset("start")
        let changes = (changes ?? history.changes.mapValues(\.rawValue)).sorted { $0.key < $1.key }
        let rare = Detail.allCases.map { ($0.rawValue, JSONValue.object(details[$0] ?? [])) }
        let columns: [(String, JSONValue)] = [
            ("begin", .int(begin)), ("strings", .strings(strings.values)),
            ("loops", .array(loops.values.map(Self.describe))), ("functions", functions),
            ("frames", frameColumns),
            ("nodes", ["caller": .indices(stacks.nodes.map(\.caller)), "frame": .ints(stacks.nodes.map(\.frame))]),
            ("stalls", stalls.value), ("metadata", .array(sets)), ("sources", .array(excerpts.values)),
            ("sides", .array(sides.map(Self.describe))), ("ids", .strings(ids)), ("shares", shares.value),
            ("link", .string(link)),
            ("pages", .object(pages.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) })),
            ("changes", .object(changes.map { ($0.key, .string($0.value)) })),
            ("rates", .object(rates)), ("hours", .optional(time?.words)),
        ]
        return PlainJSON.escapedForScript(JSONOutput.bytes(JSONValue.object(columns + rare), isIndented: false))
    }

    private var rates: [(String, JSONValue)] {
        let rates = time.map { history.rates(in: $0) } ?? [:]
        return rates.sorted { $0.key < $1.key }.map { ($0.key, .string("\($0.value.words) (\($0.value.interval))")) }
    }

    private mutating func functionColumns() -> JSONValue {
        let functions = stacks.functions
        return [
            "name": .indices(functions.map { text($0.name) }), "image": .indices(functions.map { text($0.image) }),
            "file": .indices(functions.map { text($0.file) }), "isInApp": Self.flags(functions.map(\.isInApp)),
            "isRuntimeFrame": Self.flags(functions.map(\.isRuntimeFrame)),
        ]
    }

    private var frameColumns: JSONValue {
        [
            "function": .ints(stacks.frames.map(\.function)), "line": .indices(stacks.frames.map(\.line)),
            "isInlined": Self.flags(stacks.frames.map(\.isInlined)),
            "isAsyncCaller": Self.flags(stacks.frames.map(\.isAsyncCaller)),
        ]
    }

    private static func flags(_ values: [Bool]) -> JSONValue { .ints(values.map { $0 ? 1 : 0 }) }

    private static func describe(_ side: Side) -> JSONValue {
        // Larger integers are not exact in the page.
        let microseconds = side.hours * 3.6e9
        return [
            "name": .string(side.name),
            "microseconds": .int(microseconds < 9e15 ? Int(max(microseconds, 1)) : 9_000_000_000_000_000),
        ]
    }

    private static func describe(_ loop: StallProfile.LoopIdentity) -> JSONValue {
        [
            "label": .string(loop.label), "kind": .string(StallReport.LoopKind(rawValue: loop.kind).inWords),
            "process": .string(loop.process.name),
            "pid": .optional(loop.process.pid), "thread": .optional(loop.thread),
        ]
    }
}

private struct ColumnTable {
    typealias Cell = (name: String, value: Int?)

    private var columns: [(name: String, values: [Int?])] = []

    var count: Int { columns.first?.values.count ?? 0 }

    /// Adds a row; each row has the same columns in the same order.
    mutating func append(_ row: [Cell]) {
        if columns.isEmpty { columns = row.map { ($0.name, []) } }
        for (index, cell) in row.enumerated() { columns[index].values.append(cell.value) }
    }

    /// Makes a column's values differences from the least one, which it returns.
    mutating func offset(_ name: String) -> Int {
        guard let index = columns.firstIndex(where: { $0.name == name }) else { return 0 }
        let least = columns[index].values.compactMap(\.self).min() ?? 0
        columns[index].values = columns[index].values.map { $0.map { $0 - least } }
        return least
    }

    var value: JSONValue { .object(columns.map { ($0.name, .indices($0.values)) }) }
}

private struct PageExcerpts {
    private let files: SourceFiles
    private var lines: [String: [Substring]] = [:]
    /// The number of each place; `nil` if there is no such line.
    private var numbers: [String: Int?] = [:]
    private(set) var values: [JSONValue] = []

    init(files: SourceFiles) { self.files = files }

    /// The index of a place's lines; `nil` if they are not found.
    mutating func number(of file: String?, _ line: Int?) -> Int? {
        guard let path = file, let line else { return nil }
        let place = "\(path):\(line)"
        if let known = numbers[place] { return known }
        let lines = self.lines[path] ?? files.lines(of: path)
        self.lines[path] = lines
        let number = SourceExcerpt(lines, around: line).map { excerpt in
            values.append(
                ["first": .int(excerpt.first), "place": .int(excerpt.place), "lines": .strings(excerpt.lines)])
            return values.count - 1
        }
        numbers.updateValue(number, forKey: place)
        return number
    }
}
