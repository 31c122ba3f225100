import StallReports

/// The Firefox Profiler's processed profile format, version 70, which newer versions of the page upgrade.
///
/// The fields are those of `src/types/profile.ts` (firefox-devtools/profiler, df31314e1). Each loop becomes a
/// thread, each part of a stall a sample at its beginning with its duration as weight (`tracing-ms`), each stall and
/// each turn a marker.
struct FirefoxProfile {
    private let profile: StallProfile
    private var strings = Numbered<String>()

    static func data(_ profile: StallProfile) -> [UInt8] {
        var builder = FirefoxProfile(profile: profile)
        return JSONOutput.bytes(builder.file(), isIndented: false)
    }

    private mutating func file() -> JSONValue {
        let timelines = LoopTimeline.timelines(of: profile).filter { $0.loop.number == 0 }
        var others = Dictionary(uniqueKeysWithValues: timelines.map { ($0.loop, $0.spans.filter { $0.stall == nil }) })
        // A loop that has moved to another thread is in the profile several times. The first has the turns.
        let turns = profile.loops.map { loop in
            others.removeValue(forKey: LoopTimeline.Lane(process: loop.process, label: loop.label)) ?? []
        }
        let begins = profile.stalls.map(\.startedAt.microsecondsSince1970) + turns.joined().map(\.begin)
        // Rounded down to a millisecond, because `startTime` is written in whole milliseconds.
        let begin = (begins.min() ?? 0) / 1_000 * 1_000
        var threads = zip(profile.loops, zip(profile.stallsByLoop, turns)).map { loop, contents in
            thread(loop, contents.0, contents.1, begin: begin)
        }
        for other in timelines.map(\.loop) {
            guard let spans = others[other] else { continue }
            let loop = StallProfile.LoopIdentity(process: other.process, label: other.label, kind: "", thread: nil)
            threads.append(thread(loop, [], spans, begin: begin))
        }
        let shared = self.shared()
        return [
            "meta": meta(begin: begin), "libs": .array(profile.table.images.map(Self.library)), "shared": shared,
            "threads": .array(threads),
        ]
    }

    /// The categories: the format requires that the first is grey and that each has the subcategory "Other".
    private static let categories = [("Other", "grey"), ("App", "green"), ("Stall", "red")]
    private static let other = 0
    private static let app = 1
    private static let stall = 2

    private func meta(begin: Int64) -> JSONValue {
        let categories = Self.categories.map { name, color -> JSONValue in
            ["name": .string(name), "color": .string(color), "subcategories": ["Other"]]
        }
        let fields = [("cause", "Cause"), ("kind", "Kind")].map { key, label -> JSONValue in
            ["key": .string(key), "label": .string(label), "format": "string"]
        }
        let marker: JSONValue = [
            "name": "Stall", "display": ["marker-chart", "marker-table", "timeline-overview"],
            "chartLabel": "{marker.data.cause}", "fields": .array(fields),
        ]
        let turnMarker: JSONValue = ["name": "Turn", "display": ["marker-chart", "marker-table"], "fields": []]
        return [
            "interval": 1,
            "startTime": .int(Int(begin / 1_000)),
            "processType": 0,
            "product": "StallWatch",
            "stackwalk": 1,
            "version": 30,
            "preprocessedProfileVersion": 70,
            "categories": .array(categories),
            "markerSchema": [marker, turnMarker],
            "symbolicated": true,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "importedFrom": "StallWatch",
        ]
    }

    private static func library(_ image: StackTable.Image) -> JSONValue {
        [
            "arch": "", "name": .string(image.name), "path": .string(image.path), "debugName": .string(image.name),
            "debugPath": .string(image.path), "breakpadId": "", "codeId": .optional(image.buildID),
        ]
    }

    private mutating func thread(
        _ loop: StallProfile.LoopIdentity, _ stalls: [StallProfile.Stall], _ turns: [LoopTimeline.Span], begin: Int64
    ) -> JSONValue {
        let starts = stalls.map { Int($0.startedAt.microsecondsSince1970 - begin) }
        var samples: [(time: Int, node: Int, microseconds: Int)] = []
        for (stall, start) in zip(stalls, starts) {
            var time = start
            for share in stall.shares {
                samples.append((time, share.node, share.microseconds))
                time += share.microseconds
            }
        }
        // Stalls of one loop may overlap: two monitors of a process can watch the same one.
        samples.sort { $0.time < $1.time }
        let names = (stall: string("Stall"), turn: string("Turn"))
        let turnStarts = turns.map { Int($0.begin - begin) }
        let ends = zip(starts, stalls).map { $0 + $1.microseconds } + turns.map { Int($0.end - begin) }
        let markers = stalls.count + turns.count
        let data = stalls.map { stall -> JSONValue in
            ["type": "Stall", "cause": .string(stall.cause), "kind": .string(stall.kind)]
        }
        return [
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": .null,
            "registerTime": 0,
            "unregisterTime": .null,
            "pausedRanges": [],
            "showMarkersInTimeline": true,
            "name": .string(loop.label),
            "isMainThread": .bool(loop.thread == loop.process.pid),
            "processName": .string(loop.process.name),
            "pid": .string("\(loop.process.pid)" + (profile.hasSeveralHosts ? " on \(loop.process.host)" : "")),
            "tid": loop.thread.map { .int(Int($0)) } ?? .string(loop.label),
            "samples": [
                "length": .int(samples.count),
                "stack": .ints(samples.map(\.node)),
                "time": .milliseconds(samples.map(\.time)),
                "weight": .milliseconds(samples.map(\.microseconds)),
                "weightType": "tracing-ms",
            ],
            "markers": [
                "length": .int(markers),
                "name": .ints(stalls.map { _ in names.stall } + turns.map { _ in names.turn }),
                "startTime": .milliseconds(starts + turnStarts),
                "endTime": .milliseconds(ends),
                // 1: an interval with a start and an end.
                "phase": .ints([Int](repeating: 1, count: markers)),
                "category": .ints(stalls.map { _ in Self.stall } + turns.map { _ in Self.other }),
                "data": .array(data + turns.map { _ -> JSONValue in ["type": "Turn"] }),
            ],
        ]
    }

    private mutating func shared() -> JSONValue {
        let table = profile.table
        let functions = self.functions()
        let resources = table.images.map { string($0.name) }
        let frames = table.frames
        // Only code with a source map has an original location.
        let noOriginal = JSONValue.indices(frames.map { _ in nil })
        return [
            "stackTable": [
                "length": .int(table.nodes.count),
                "frame": .ints(table.nodes.map(\.frame)),
                // How far before a stack its callers are; 0: it has none.
                "prefixOffset": .ints(table.nodes.enumerated().map { $0 - ($1.caller ?? $0) }),
            ],
            "frameTable": [
                "length": .int(frames.count),
                // -1: no address, because there is no image or the address does not fit.
                "address": .ints(frames.map { $0.image == nil ? -1 : Int(exactly: $0.address) ?? -1 }),
                "lib": .ints(frames.map { $0.image ?? -1 }),
                "inlineDepth": .ints(frames.map(\.inlineDepth)),
                "category": .ints(frames.map { table.functions[$0.function].isInApp ? Self.app : Self.other }),
                "subcategory": .ints(frames.map { _ in 0 }),
                "func": .ints(frames.map(\.function)),
                "nativeSymbol": .indices(frames.map { _ in nil }),
                "innerWindowID": .ints(frames.map { _ in 0 }),
                "line": .indices(frames.map(\.line)),
                "column": .indices(frames.map(\.column)),
                "originalLocation": noOriginal,
            ],
            "funcTable": functions.table,
            "resourceTable": [
                "length": .int(resources.count),
                "name": .ints(resources),
                "host": .indices(resources.map { _ in nil }),
                // 1: a library.
                "type": .ints(resources.map { _ in 1 }),
            ],
            "nativeSymbols": ["length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []],
            "sources": functions.sources,
            "sourceLocationTable": ["length": 0, "source": [], "line": [], "column": []],
            "stringArray": .strings(strings.values),
        ]
    }

    private mutating func functions() -> (table: JSONValue, sources: JSONValue) {
        let table = profile.table
        let names = table.functions.map { string($0.name) }
        var files = Numbered<String>()
        let sources = table.functions.map { function in function.file.map { files.number(of: $0) } }
        // A function that is in several builds of an image belongs to the first of them.
        var resources = [Int](repeating: -1, count: names.count)
        for frame in table.frames where resources[frame.function] < 0 { resources[frame.function] = frame.image ?? -1 }
        let missing = JSONValue.indices(names.map { _ in nil })
        let no = JSONValue.array(names.map { _ in false })
        let none = JSONValue.indices(files.values.map { _ in nil })
        // A source is a whole file: it begins at line 1, column 1.
        let first = JSONValue.ints(files.values.map { _ in 1 })
        return (
            table: [
                "length": .int(names.count), "name": .ints(names), "isJS": no, "relevantForJS": no,
                "resource": .ints(resources), "source": .indices(sources), "lineNumber": missing,
                "columnNumber": missing, "originalLocation": missing,
            ],
            sources: [
                "length": .int(files.values.count), "id": none, "filename": .ints(files.values.map { string($0) }),
                "startLine": first, "startColumn": first, "sourceMapURL": none, "content": none,
            ]
        )
    }

    private mutating func string(_ text: String) -> Int { strings.number(of: text) }
}
