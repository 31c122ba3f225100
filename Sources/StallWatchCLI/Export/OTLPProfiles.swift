import LinuxSupport
import StallReports

/// Profiles of OpenTelemetry: the message `ProfilesData` of profiles.proto, v1development of opentelemetry-proto 1.10.
///
/// That version is not stable. There is a profile for each process. A sample has one value, the stalled time in
/// nanoseconds, the time at which the stall began, and a link to the span that the report's metadata name.
struct OTLPProfiles {
    private let profile: StallProfile
    /// In each table, index 0 is an empty element, which stands for none (profiles.proto).
    private var strings = Numbered([""])
    private var attributes = Numbered<OTLPAttributes.Attribute>()
    private var links = Numbered<TraceContext>()
    private var locations = Numbered<[Int]>()
    private var stacks = Numbered<Int>()

    static func data(_ profile: StallProfile) -> [UInt8] {
        var builder = OTLPProfiles(profile: profile)
        return builder.data()
    }

    private mutating func data() -> [UInt8] {
        var writer = ProtobufWriter()
        let byProcess = Dictionary(grouping: profile.stalls) { profile.loops[$0.loop].process }
        let inOrder = byProcess.sorted {
            ($0.key.name, $0.key.pid, $0.key.host) < ($1.key.name, $1.key.pid, $1.key.host)
        }
        for (process, stalls) in inOrder {
            let bytes = self.bytes(of: stalls.sorted { $0.startedAt < $1.startedAt }, process)
            var resource = OTLPAttributes()
            resource.set("service.name", process.name)
            resource.set("process.executable.name", process.name)
            resource.set("process.pid", Int(process.pid))
            resource.set("host.name", process.host)
            writer.scope(of: resource, [bytes])
        }
        // After the samples, which fill the tables.
        let dictionary = self.dictionary()
        writer.data(2, dictionary)
        return writer.bytes
    }

    /// The message `Profile` with the stalls of a process.
    private mutating func bytes(of stalls: [StallProfile.Stall], _ process: StallProfile.Process) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.message(1, numbers: strings.number(of: "stalled"), strings.number(of: "nanoseconds"))
        for stall in stalls { writeSamples(of: stall, to: &writer) }
        let begin = stalls.map(\.startedAt.nanoseconds).min() ?? 0
        let ends = stalls.map { stall in
            stall.startedAt.nanoseconds.addingReportingOverflow(UInt64(stall.microseconds) &* 1_000)
        }
        let end = ends.map { $0.overflow ? .max : $0.partialValue }.max() ?? begin
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
        let link = stall.trace.traceID.isEmpty ? 0 : links.number(of: stall.trace) + 1
        for share in stall.allShares {
            let stack = stacks.number(of: share.node) + 1
            writer.message(2) { sample in
                sample.number(1, stack)
                sample.numbers(2, labels)
                sample.number(3, link)
                sample.numbers(4, [share.microseconds * 1_000])
                sample.fixed(5, [stall.startedAt.nanoseconds])
            }
        }
    }

    private mutating func dictionary() -> [UInt8] {
        var writer = ProtobufWriter()
        let table = profile.table
        let stacks = stacks.values.map { node in table.places(of: node).map { locations.number(of: $0) + 1 } }
        writer.data(1, [])
        for image in table.images {
            let path = strings.number(of: image.path)
            let build = image.buildID.map { attribute("process.executable.build_id.gnu", .text($0)) }
            writer.message(1) {
                $0.number(4, path)
                $0.numbers(5, build.map { [$0] } ?? [])
            }
        }
        writer.data(2, [])
        for place in locations.values {
            let frames = place.map { table.frames[$0] }
            writer.message(2) { location in
                location.number(1, frames[0].image.map { $0 + 1 } ?? 0)
                location.number(2, frames[0].address)
                for frame in frames {
                    location.message(3, numbers: frame.function + 1, frame.line ?? 0, frame.column ?? 0)
                }
            }
        }
        writer.data(3, [])
        for function in table.functions {
            let texts = [function.name, function.symbol ?? function.name, function.file ?? ""]
            let numbers = texts.map { strings.number(of: $0) }
            writer.message(3, numbers: numbers[0], numbers[1], numbers[2])
        }
        writer.data(4, [])
        for link in links.values {
            writer.message(4) {
                $0.data(1, link.traceID)
                $0.data(2, link.spanID)
            }
        }
        let keys = attributes.values.map { strings.number(of: $0.key) }
        for string in strings.values { writer.string(5, string) }
        writer.data(6, [])
        for (key, attribute) in zip(keys, attributes.values) {
            writer.message(6) { pair in
                pair.number(1, key)
                pair.message(2) { $0.value(attribute.value) }
            }
        }
        writer.data(7, [])
        for stack in stacks { writer.message(7) { $0.numbers(1, stack) } }
        return writer.bytes
    }

    private mutating func attribute(_ key: String, _ value: OTLPAttributes.Value) -> Int {
        attributes.number(of: OTLPAttributes.Attribute(key: key, value: value)) + 1
    }

    private static func hash(_ stalls: [StallProfile.Stall], _ process: StallProfile.Process, seed: UInt64) -> [UInt8] {
        var values = [UInt64(bitPattern: Int64(process.pid))]
        values += process.host.utf8.map { UInt64($0) }
        values += stalls.flatMap { [$0.startedAt.nanoseconds, UInt64(bitPattern: Int64($0.microseconds))] }
        let bytes = values.flatMap { littleEndian($0) }
        return littleEndian(bytes.reduce(seed) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 })
    }
}
