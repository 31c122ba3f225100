import StallReports

/// The page's data: columns of numbers, with each text, function and stack stored once.
///
/// 20,000 reports share a few hundred stacks; as JSON reports they would take half a gigabyte.
struct PageData {
    private var table = StackTable()
    private var strings: [String] = []
    private var stringIndices: [String: Int] = [:]
    private var loops: [Loop] = []
    private var loopIndices: [Loop: Int] = [:]
    private var rows: [Row] = []
    private var shares: [(node: Int, microseconds: Int)] = []
    private var locks: [(stall: Int, lock: JSONText.Value)] = []
    private var threads: [(stall: Int, threads: JSONText.Value)] = []
    private var contexts: [(stall: Int, words: JSONText.Value)] = []
    private var history: [(stall: Int, history: JSONText.Value)] = []
    /// Each set of metadata once: keys and values in turn, as indices into ``strings``.
    private var metadata: [[Int?]] = []
    private var metadataIndices: [[String: String]: Int] = [:]
    private let sides: [Side]
    private let showsSource: Bool
    /// The lines of each source file that was looked for.
    private var sourceLines: [String: [Substring]] = [:]
    private var sources: [JSONText.Value] = []
    /// The index in ``sources`` of each place; `nil` if there is no such line.
    private var sourceIndices: [String: Int?] = [:]

    /// One side of a comparison.
    struct Side {
        /// The path of its reports.
        var name: String
        /// The monitored time.
        var hours: Double
    }

    /// Creates data without reports.
    ///
    /// - Parameters:
    ///   - sides: The two sides of a comparison; empty for none.
    ///   - showsSource: Whether the source lines around the culprits are looked for.
    init(comparing sides: [Side] = [], showsSource: Bool = false) {
        self.sides = sides
        self.showsSource = showsSource
    }

    private struct Loop: Hashable {
        var label: String
        var kind: String
        var process: String
        var pid: Int32
        var thread: Int32?
    }

    /// A stall; texts are indices into ``strings``, times are microseconds.
    private struct Row {
        var id: String
        var startedAt: Int64
        var duration: Int
        var threshold: Int
        var loop: Int
        var kind: Int?
        var state: Int?
        var callout: Int?
        var fingerprint: Int?
        var repeats: Int
        /// The duration with those of the repeats, and the longest of them, in microseconds.
        var total: Int
        var greatest: Int
        var culprit: Int?
        var place: Int?
        var cause: Int?
        var context: Int?
        var summary: Int?
        var confidence: Int?
        var onCPU: Int
        var runQueue: Int
        var blocked: Int
        /// The reason why there is no culprit.
        var unknown: Int?
        /// The reasons of samples without a stack, one a line, each with their number.
        var reasons: Int?
        /// The functions of the kernel, one a line, innermost first.
        var kernel: Int?
        /// Index into ``sources``.
        var source: Int?
        /// Index into ``metadata``.
        var metadata: Int
        /// Index into ``sides``.
        var side: Int
        var sharesEnd: Int
    }

    /// The number of reports.
    var count: Int { rows.count }

    /// Adds a report.
    ///
    /// - Parameters:
    ///   - report: The report.
    ///   - side: The side of the comparison that it belongs to.
    mutating func add(_ report: StallReport, side: Int = 0) {
        shares += table.add(report)
        if let lock = report.cause?.lock { locks.append((rows.count, describe(lock, of: report))) }
        if let others = report.otherThreads, !others.isEmpty {
            threads.append((rows.count, .array(others.map { describe($0, of: report) })))
        }
        if let context = report.context { contexts.append((rows.count, .string(context.inWords))) }
        if let led = report.history, led.loops.contains(where: { !$0.turns.isEmpty }) {
            history.append((rows.count, Self.describe(led)))
        }
        let culprit = report.culprit
        let place = culprit?.file.map { file in file + (culprit?.line.map { ":\($0)" } ?? "") } ?? culprit?.image
        let cause = report.cause
        rows.append(
            Row(
                id: report.id, startedAt: report.startedAt.microsecondsSince1970,
                duration: StallWeights.microseconds(of: report),
                threshold: StallWeights.microseconds(report.thresholdMilliseconds),
                loop: loop(of: report), kind: index(report.kind.rawValue), state: index(report.state.rawValue),
                callout: index(report.callout?.rawValue), fingerprint: index(report.fingerprint),
                repeats: report.repeats,
                total: StallWeights.microseconds(
                    ReportSummary.total(report.durationMilliseconds, report.repeats, report.repeated)),
                greatest: StallWeights.microseconds(
                    max(report.durationMilliseconds, report.repeated?.greatestMilliseconds ?? 0)),
                culprit: index(culprit?.function), place: index(place),
                cause: index(cause?.kind.rawValue), context: index(report.context?.name),
                summary: index(cause?.summary),
                confidence: index(cause?.confidence.rawValue),
                onCPU: StallWeights.microseconds(cause?.onCPUMilliseconds ?? 0),
                runQueue: StallWeights.microseconds(cause?.runQueueMilliseconds ?? 0),
                blocked: StallWeights.microseconds(cause?.blockedMilliseconds ?? 0),
                unknown: index(culprit == nil ? report.missingCulpritReason : nil),
                reasons: index(Self.reasons(of: report)),
                kernel: index(cause?.kernelStack.flatMap { $0.isEmpty ? nil : $0.joined(separator: "\n") }),
                source: showsSource ? source(of: culprit) : nil, metadata: index(report.metadata), side: side,
                sharesEnd: shares.count
            )
        )
    }

    /// The reasons of samples without a stack, each once with the number of samples.
    private static func reasons(of report: StallReport) -> String? {
        var counts: [String: Int] = [:]
        var order: [String] = []
        for reason in report.samples.compactMap(\.reason) {
            if counts[reason] == nil { order.append(reason) }
            counts[reason, default: 0] += 1
        }
        let lines = order.map { "\(counts[$0] ?? 0) × \($0)" }
        return lines.isEmpty ? nil : lines.joined(separator: "\n")
    }

    /// The index of the source lines around a culprit; `nil` if they are not found.
    private mutating func source(of culprit: StallReport.Culprit?) -> Int? {
        guard let path = culprit?.file, let line = culprit?.line else { return nil }
        let place = "\(path):\(line)"
        if let known = sourceIndices[place] { return known }
        let lines = sourceLines[path] ?? SourceExcerpt.lines(of: path)
        sourceLines[path] = lines
        let excerpt = SourceExcerpt(lines, around: line)
        if let excerpt {
            sources.append(
                .object([
                    ("first", .int(excerpt.first)), ("place", .int(excerpt.place)), ("lines", .strings(excerpt.lines)),
                ])
            )
        }
        let index = excerpt.map { _ in sources.count - 1 }
        sourceIndices.updateValue(index, forKey: place)
        return index
    }

    private mutating func index(_ metadata: [String: String]) -> Int {
        if let known = metadataIndices[metadata] { return known }
        let texts = metadata.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
        self.metadata.append(texts.map { index($0) })
        metadataIndices[metadata] = self.metadata.count - 1
        return self.metadata.count - 1
    }

    private mutating func loop(of report: StallReport) -> Int {
        let loop = Loop(
            label: report.loop.label, kind: report.loop.kind.rawValue, process: report.process.name,
            pid: report.process.pid, thread: report.loop.thread?.id
        )
        if let known = loopIndices[loop] { return known }
        loops.append(loop)
        loopIndices[loop] = loops.count - 1
        return loops.count - 1
    }

    /// Locks are rare and structured, so they are not in columns.
    private mutating func describe(_ lock: StallReport.Lock, of report: StallReport) -> JSONText.Value {
        let owners = lock.owners.map { owner in
            JSONText.Value.object([
                ("thread", .int(Int(owner.thread.id))), ("name", .optional(owner.thread.name)),
                ("node", node(owner.stack, of: report)), ("isRunning", .bool(owner.isRunning)),
                ("call", Self.words(for: owner.systemCall)), ("waitsFor", .optional(owner.waitsFor?.rawValue)),
            ])
        }
        return .object([
            ("kind", .string(lock.kind.rawValue)), ("label", .optional(lock.label)),
            ("function", .optional(lock.function)), ("isDeadlock", .bool(lock.isDeadlock)),
            ("reason", .optional(lock.reason)), ("owners", .array(owners)),
        ])
    }

    /// The turns of each loop that had any, the stalled one first: begin and duration in microseconds, in turn.
    private static func describe(_ history: StallReport.History) -> JSONText.Value {
        let loops = history.loops.enumerated().filter { $0.offset == 0 || !$0.element.turns.isEmpty }.map { _, loop in
            JSONText.Value.object([
                ("label", .string(loop.label)),
                (
                    "turns",
                    .ints(
                        loop.turns.flatMap { turn in
                            [turn.atMilliseconds, turn.durationMilliseconds].map { Int(($0 * 1_000).rounded()) }
                        }
                    )
                ),
            ])
        }
        return .object([
            ("window", .int(StallWeights.microseconds(history.windowMilliseconds))), ("loops", .array(loops)),
        ])
    }

    /// Other threads are rare and structured, too.
    private mutating func describe(_ other: StallReport.OtherThread, of report: StallReport) -> JSONText.Value {
        .object([
            ("thread", .int(Int(other.thread.id))), ("name", .optional(other.thread.name)),
            ("state", .optional(other.threadState?.rawValue)), ("node", node(other.stack, of: report)),
            ("call", Self.words(for: other.systemCall)), ("waitsFor", .optional(other.lock?.kind.rawValue)),
            ("owner", other.lock?.owners.first.map { .int(Int($0.thread.id)) } ?? .null),
            ("isDeadlock", .bool(other.lock?.isDeadlock ?? false)), ("reason", .optional(other.reason)),
        ])
    }

    /// The node of a stack; null if there is none.
    private mutating func node(_ stack: Int?, of report: StallReport) -> JSONText.Value {
        guard let stack, report.stacks.indices.contains(stack) else { return .null }
        return .int(table.add(stack: stack, of: report))
    }

    private static func words(for call: StallReport.SystemCall?) -> JSONText.Value {
        .optional(call.map { call in call.name + (call.target.map { "(\($0))" } ?? "") })
    }

    private mutating func index(_ text: String?) -> Int? {
        guard let text else { return nil }
        if let known = stringIndices[text] { return known }
        strings.append(text)
        stringIndices[text] = strings.count - 1
        return strings.count - 1
    }

    /// The JSON that the page's scripts read, safe within a `<script>` element.
    mutating func json() -> [UInt8] {
        let functions = table.functions.map { (index($0.name), index($0.image), index($0.file)) }
        let begin = rows.map(\.startedAt).min() ?? 0
        func column(_ value: (Row) -> Int) -> JSONText.Value { .ints(rows.map(value)) }
        func texts(_ value: (Row) -> Int?) -> JSONText.Value { .indices(rows.map(value)) }
        func flags(_ values: [Bool]) -> JSONText.Value { .ints(values.map { $0 ? 1 : 0 }) }
        let file = JSONText.Value.object([
            ("begin", .int(Int(begin))),
            ("strings", .strings(strings)),
            ("loops", .array(loops.map(Self.describe))),
            (
                "functions",
                .object([
                    ("name", .indices(functions.map(\.0))), ("image", .indices(functions.map(\.1))),
                    ("file", .indices(functions.map(\.2))), ("isInApp", flags(table.functions.map(\.isInApp))),
                    ("isRuntimeFrame", flags(table.functions.map(\.isRuntimeFrame))),
                ])
            ),
            (
                "frames",
                .object([
                    ("function", .ints(table.frames.map(\.function))), ("line", .indices(table.frames.map(\.line))),
                    ("isInlined", flags(table.frames.map(\.isInlined))),
                    ("isAsyncCaller", flags(table.frames.map(\.isAsyncCaller))),
                ])
            ),
            (
                "nodes",
                .object([
                    ("caller", .indices(table.nodes.map(\.caller))), ("frame", .ints(table.nodes.map(\.frame))),
                ])
            ),
            (
                "stalls",
                .object([
                    ("start", column { Int($0.startedAt - begin) }), ("duration", column(\.duration)),
                    ("threshold", column(\.threshold)), ("loop", column(\.loop)), ("kind", texts(\.kind)),
                    ("state", texts(\.state)), ("callout", texts(\.callout)), ("fingerprint", texts(\.fingerprint)),
                    ("repeats", column(\.repeats)), ("total", column(\.total)), ("greatest", column(\.greatest)), ("culprit", texts(\.culprit)), ("place", texts(\.place)),
                    ("cause", texts(\.cause)), ("context", texts(\.context)), ("summary", texts(\.summary)),
                    ("confidence", texts(\.confidence)),
                    ("onCPU", column(\.onCPU)), ("runQueue", column(\.runQueue)), ("blocked", column(\.blocked)),
                    ("unknown", texts(\.unknown)), ("reasons", texts(\.reasons)), ("kernel", texts(\.kernel)),
                    ("source", texts(\.source)),
                    ("metadata", column(\.metadata)), ("side", column(\.side)), ("sharesEnd", column(\.sharesEnd)),
                ])
            ),
            ("metadata", .array(metadata.map { .indices($0) })),
            ("sources", .array(sources)),
            ("sides", .array(sides.map(Self.describe))),
            ("ids", .strings(rows.map(\.id))),
            (
                "shares",
                .object([("node", .ints(shares.map(\.node))), ("microseconds", .ints(shares.map(\.microseconds)))])
            ),
            ("locks", .object(locks.map { (String($0.stall), $0.lock) })),
            ("threads", .object(threads.map { (String($0.stall), $0.threads) })),
            ("contexts", .object(contexts.map { (String($0.stall), $0.words) })),
            ("history", .object(history.map { (String($0.stall), $0.history) })),
        ])
        return JSONText(file, escapesMarkup: true).bytes
    }

    private static func describe(_ side: Side) -> JSONText.Value {
        .object([("name", .string(side.name)), ("microseconds", .int(max(Int(side.hours * 3_600_000_000), 1)))])
    }

    private static func describe(_ loop: Loop) -> JSONText.Value {
        .object([
            ("label", .string(loop.label)), ("kind", .string(loop.kind)), ("process", .string(loop.process)),
            ("pid", .int(Int(loop.pid))), ("thread", loop.thread.map { .int(Int($0)) } ?? .null),
        ])
    }
}
