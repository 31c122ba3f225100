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
        var culprit: Int?
        var place: Int?
        var cause: Int?
        var summary: Int?
        var confidence: Int?
        var onCPU: Int
        var runQueue: Int
        var blocked: Int
        var metadata: Int?
        var sharesEnd: Int
    }

    /// The number of reports.
    var count: Int { rows.count }

    /// Adds a report.
    mutating func add(_ report: StallReport) {
        shares += table.add(report)
        if let lock = report.cause?.lock { locks.append((rows.count, describe(lock, of: report))) }
        let culprit = report.culprit
        let place = culprit?.file.map { file in file + (culprit?.line.map { ":\($0)" } ?? "") } ?? culprit?.image
        let metadata = report.metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let cause = report.cause
        rows.append(
            Row(
                id: report.id, startedAt: report.startedAt.microsecondsSince1970,
                duration: StallWeights.microseconds(of: report),
                threshold: StallWeights.microseconds(report.thresholdMilliseconds),
                loop: loop(of: report), kind: index(report.kind.rawValue), state: index(report.state.rawValue),
                callout: index(report.callout?.rawValue), fingerprint: index(report.fingerprint),
                repeats: report.repeats, culprit: index(culprit?.function), place: index(place),
                cause: index(cause?.kind.rawValue), summary: index(cause?.summary),
                confidence: index(cause?.confidence.rawValue),
                onCPU: StallWeights.microseconds(cause?.onCPUMilliseconds ?? 0),
                runQueue: StallWeights.microseconds(cause?.runQueueMilliseconds ?? 0),
                blocked: StallWeights.microseconds(cause?.blockedMilliseconds ?? 0),
                metadata: index(metadata.isEmpty ? nil : metadata.joined(separator: ", ")), sharesEnd: shares.count
            )
        )
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
            let isStack = owner.stack.map(report.stacks.indices.contains) ?? false
            let node = isStack ? owner.stack.map { table.add(stack: $0, of: report) } : nil
            let call = owner.systemCall.map { call in call.name + (call.target.map { "(\($0))" } ?? "") }
            return JSONText.Value.object([
                ("thread", .int(Int(owner.thread.id))), ("name", .optional(owner.thread.name)),
                ("node", node.map { .int($0) } ?? .null), ("isRunning", .bool(owner.isRunning)),
                ("call", .optional(call)), ("waitsFor", .optional(owner.waitsFor?.rawValue)),
            ])
        }
        return .object([
            ("kind", .string(lock.kind.rawValue)), ("label", .optional(lock.label)),
            ("function", .optional(lock.function)), ("isDeadlock", .bool(lock.isDeadlock)),
            ("reason", .optional(lock.reason)), ("owners", .array(owners)),
        ])
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
                    ("repeats", column(\.repeats)), ("culprit", texts(\.culprit)), ("place", texts(\.place)),
                    ("cause", texts(\.cause)), ("summary", texts(\.summary)), ("confidence", texts(\.confidence)),
                    ("onCPU", column(\.onCPU)), ("runQueue", column(\.runQueue)), ("blocked", column(\.blocked)),
                    ("metadata", texts(\.metadata)), ("sharesEnd", column(\.sharesEnd)),
                ])
            ),
            ("ids", .strings(rows.map(\.id))),
            (
                "shares",
                .object([("node", .ints(shares.map(\.node))), ("microseconds", .ints(shares.map(\.microseconds)))])
            ),
            ("locks", .object(locks.map { (String($0.stall), $0.lock) })),
        ])
        return JSONText(file, escapesMarkup: true).bytes
    }

    private static func describe(_ loop: Loop) -> JSONText.Value {
        .object([
            ("label", .string(loop.label)), ("kind", .string(loop.kind)), ("process", .string(loop.process)),
            ("pid", .int(Int(loop.pid))), ("thread", loop.thread.map { .int(Int($0)) } ?? .null),
        ])
    }
}
