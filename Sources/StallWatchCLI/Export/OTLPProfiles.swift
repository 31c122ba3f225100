import StallReports

/// Profiles of OpenTelemetry: the message `ProfilesData` of profiles.proto, v1development of opentelemetry-proto 1.10.
///
/// That version is not stable. There is a profile for each process. A sample has one value, the stalled time in
/// nanoseconds, the time at which the stall began, and a link to the span that the report's metadata name.
struct OTLPProfiles {
    private let profile: StallProfile
    /// In each table, index 0 is an empty element, which stands for none (profiles.proto).
    private var strings = [""]
    private var stringIndices = ["": 0]
    private var attributes: [(key: String, value: OTLPAttributes.Value)] = []
    private var attributeIndices: [String: Int] = [:]
    private var links: [TraceContext] = []
    private var linkIndices: [TraceContext: Int] = [:]
    private var locations: [[Int]] = []
    private var locationIndices: [[Int]: Int] = [:]
    private var stacks: [[Int]] = []
    private var stackIndices: [Int: Int] = [:]

    static func data(_ profile: StallProfile) -> [UInt8] {
        var builder = OTLPProfiles(profile)
        return builder.data()
    }

    private init(_ profile: StallProfile) {
        self.profile = profile
    }

    private struct Process: Hashable {
        var name: String
        var pid: Int32
    }

    private mutating func data() -> [UInt8] {
        var writer = ProtobufWriter()
        let byProcess = Dictionary(grouping: profile.stalls) { stall in
            Process(name: profile.loops[stall.loop].process, pid: profile.loops[stall.loop].pid)
        }
        for (process, stalls) in byProcess.sorted(by: { ($0.key.name, $0.key.pid) < ($1.key.name, $1.key.pid) }) {
            let bytes = self.bytes(of: stalls.sorted { $0.startedAt < $1.startedAt }, process)
            writer.message(1) { resource in
                var attributes = OTLPAttributes()
                attributes.set("service.name", process.name)
                attributes.set("process.executable.name", process.name)
                attributes.set("process.pid", Int(process.pid))
                resource.data(1, OTLPResource(attributes: attributes).bytes())
                resource.message(2) { scope in
                    scope.message(1) { $0.scope() }
                    scope.data(2, bytes)
                }
            }
        }
        // After the samples, which fill the tables.
        let dictionary = self.dictionary()
        writer.data(2, dictionary)
        return writer.bytes
    }

    /// The message `Profile` with the stalls of a process.
    private mutating func bytes(of stalls: [StallProfile.Stall], _ process: Process) -> [UInt8] {
        var writer = ProtobufWriter()
        let (type, unit) = (index(of: "stalled"), index(of: "nanoseconds"))
        writer.message(1) {
            $0.number(1, type)
            $0.number(2, unit)
        }
        for stall in stalls { writeSamples(of: stall, to: &writer) }
        let begin = stalls.map { Self.nanoseconds($0.startedAt) }.min() ?? 0
        let end = stalls.map { Self.nanoseconds($0.startedAt) &+ UInt64($0.microseconds) &* 1_000 }.max() ?? begin
        writer.fixed(3, begin)
        writer.number(4, end &- begin)
        // The same profile has the same id. FNV-1a over the stalls, in two variants.
        writer.data(7, [0xcbf2_9ce4_8422_2325, 0x8422_2325_cbf2_9ce4].flatMap { Self.hash(stalls, process, seed: $0) })
        return writer.bytes
    }

    private mutating func writeSamples(of stall: StallProfile.Stall, to writer: inout ProtobufWriter) {
        let loop = profile.loops[stall.loop]
        var labels = [
            attribute("stallwatch.loop.label", .text(loop.label)), attribute("stallwatch.kind", .text(stall.kind)),
            attribute("stallwatch.cause", .text(stall.cause)),
        ]
        if let thread = loop.thread { labels.append(attribute("thread.id", .integer(Int(thread)))) }
        let link = stall.trace.traceID.isEmpty ? 0 : link(stall.trace)
        for share in stall.allShares {
            let stack = stack(share.node)
            writer.message(2) { sample in
                sample.number(1, stack)
                sample.numbers(2, labels)
                sample.number(3, link)
                sample.numbers(4, [share.microseconds * 1_000])
                sample.fixed(5, [Self.nanoseconds(stall.startedAt)])
            }
        }
    }

    /// The message `ProfilesDictionary`.
    private mutating func dictionary() -> [UInt8] {
        var writer = ProtobufWriter()
        let table = profile.table
        writer.data(1, [])
        for image in table.images {
            let path = index(of: image.path)
            let build = image.buildID.map { attribute("process.executable.build_id.gnu", .text($0)) }
            writer.message(1) {
                $0.number(4, path)
                $0.numbers(5, build.map { [$0] } ?? [])
            }
        }
        writer.data(2, [])
        for place in locations {
            let frames = place.map { table.frames[$0] }
            writer.message(2) { location in
                location.number(1, frames[0].image.map { $0 + 1 } ?? 0)
                location.number(2, frames[0].address)
                for frame in frames {
                    location.message(3) {
                        $0.number(1, frame.function + 1)
                        $0.number(2, frame.line ?? 0)
                        $0.number(3, frame.column ?? 0)
                    }
                }
            }
        }
        writer.data(3, [])
        for function in table.functions {
            let (name, symbol) = (index(of: function.name), index(of: function.symbol ?? function.name))
            let file = index(of: function.file ?? "")
            writer.message(3) {
                $0.number(1, name)
                $0.number(2, symbol)
                $0.number(3, file)
            }
        }
        writer.data(4, [])
        for link in links {
            writer.message(4) {
                $0.data(1, link.traceID)
                $0.data(2, link.spanID)
            }
        }
        let keys = attributes.map { index(of: $0.key) }
        for string in strings { writer.string(5, string) }
        writer.data(6, [])
        for (key, attribute) in zip(keys, attributes) {
            writer.message(6) { pair in
                pair.number(1, key)
                pair.message(2) { $0.value(attribute.value) }
            }
        }
        writer.data(7, [])
        for stack in stacks { writer.message(7) { $0.numbers(1, stack) } }
        return writer.bytes
    }

    // MARK: - Tables

    private mutating func index(of string: String) -> Int {
        if let known = stringIndices[string] { return known }
        strings.append(string)
        stringIndices[string] = strings.count - 1
        return strings.count - 1
    }

    private mutating func attribute(_ key: String, _ value: OTLPAttributes.Value) -> Int {
        let name = "\(key)=\(value)"
        if let known = attributeIndices[name] { return known }
        attributes.append((key, value))
        attributeIndices[name] = attributes.count
        return attributes.count
    }

    private mutating func link(_ trace: TraceContext) -> Int {
        if let known = linkIndices[trace] { return known }
        links.append(trace)
        linkIndices[trace] = links.count
        return links.count
    }

    private mutating func stack(_ node: Int) -> Int {
        if let known = stackIndices[node] { return known }
        let stack = profile.table.places(of: node).map { place in
            if let known = locationIndices[place] { return known }
            locations.append(place)
            locationIndices[place] = locations.count
            return locations.count
        }
        stacks.append(stack)
        stackIndices[node] = stacks.count
        return stacks.count
    }

    // MARK: - Numbers

    /// Nanoseconds since 1970; 0 for an earlier time.
    private static func nanoseconds(_ time: Timestamp) -> UInt64 {
        UInt64(clamping: time.microsecondsSince1970).multipliedReportingOverflow(by: 1_000).partialValue
    }

    private static func hash(_ stalls: [StallProfile.Stall], _ process: Process, seed: UInt64) -> [UInt8] {
        var hash = seed
        func add(_ value: UInt64) {
            withUnsafeBytes(of: value.littleEndian) { bytes in
                for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            }
        }
        add(UInt64(bitPattern: Int64(process.pid)))
        for stall in stalls {
            add(nanoseconds(stall.startedAt))
            add(UInt64(bitPattern: Int64(stall.microseconds)))
        }
        return withUnsafeBytes(of: hash.littleEndian) { Array($0) }
    }
}
