import LinuxSupport
import StallReports

/// The message `Profile` of google/pprof's `proto/profile.proto`, in a gzip file: each sample has the number of stalls,
/// the stalled time in microseconds, which pprof shows by default, and labels (`pprof -tagfocus`).
struct PprofProfile {
    private let profile: StallProfile
    /// The string table, in which index 0 has to be the empty string (profile.proto).
    private var strings = Numbered([""])
    /// The frames of each address: the inlined functions first, then the function itself.
    private var locations = Numbered<[Int]>()
    private var stacks: [Int: [Int]] = [:]

    static func data(_ profile: StallProfile) -> [UInt8] {
        var builder = PprofProfile(profile: profile)
        return builder.data()
    }

    private mutating func data() -> [UInt8] {
        var writer = ProtobufWriter()
        let valueTypes = [("stalls", "count"), ("stalled", "microseconds")].map { (index(of: $0), index(of: $1)) }
        for (type, unit) in valueTypes { writer.message(1, numbers: type, unit) }
        for stall in profile.stalls { writeSamples(of: stall, to: &writer) }
        writeMappings(to: &writer)
        writeLocations(to: &writer)
        writeFunctions(to: &writer)
        let stalled = index(of: "stalled")
        let comment = index(of: "stallwatch \(StallWatchVersion.current)")
        for string in strings.values { writer.string(6, string) }
        let times = profile.stalls.map(\.startedAt.microsecondsSince1970)
        if let first = times.min(), let last = times.max() {
            writer.number(9, Self.nanoseconds(first))
            writer.number(10, Self.nanoseconds(last - first))
        }
        writer.numbers(13, [comment])
        writer.number(14, stalled)
        return GzipFile.data(writer.bytes)
    }

    /// Converts microseconds; returns 0, which means "unknown" in the format, on overflow, as after the year 2262.
    private static func nanoseconds(_ microseconds: Int64) -> Int {
        let (product, overflows) = microseconds.multipliedReportingOverflow(by: 1_000)
        return overflows ? 0 : Int(product)
    }

    private mutating func writeSamples(of stall: StallProfile.Stall, to writer: inout ProtobufWriter) {
        let loop = profile.loops[stall.loop]
        let process = loop.process
        let labels = [
            ("process", "\(process.name) (\(process.pid))" + (profile.hasSeveralHosts ? " on \(process.host)" : "")),
            ("loop", loop.label), ("kind", stall.kind), ("cause", stall.cause),
        ].map { (index(of: $0), index(of: $1)) }
        for (place, share) in stall.allShares.enumerated() {
            let stack = locations(of: share.node)
            writer.message(2) { sample in
                sample.numbers(1, stack)
                // Only the first sample of a stall counts the stall.
                sample.numbers(2, [place == 0 ? stall.repeats &+ 1 : 0, share.microseconds])
                for (key, value) in labels { sample.message(3, numbers: key, value) }
            }
        }
    }

    private mutating func locations(of node: Int) -> [Int] {
        if let known = stacks[node] { return known }
        let ids = profile.table.places(of: node).map { locations.number(of: $0) + 1 }
        stacks[node] = ids
        return ids
    }

    private mutating func writeMappings(to writer: inout ProtobufWriter) {
        let table = profile.table
        var ends = [UInt64](repeating: 0, count: table.images.count)
        for frame in table.frames {
            if let image = frame.image { ends[image] = max(ends[image], frame.address) }
        }
        for (number, image) in table.images.enumerated() {
            let path = index(of: image.path)
            let build = index(of: image.buildID ?? "")
            writer.message(3) {
                $0.number(1, number + 1)
                // Addresses are relative to the file, so each file is mapped at 0.
                $0.number(3, ends[number] == .max ? .max : ends[number] + 1)
                $0.number(5, path)
                $0.number(6, build)
                // has_functions, has_filenames, has_line_numbers, has_inline_frames: pprof need not symbolicate.
                for field in 7...10 { $0.number(field, 1) }
            }
        }
    }

    private func writeLocations(to writer: inout ProtobufWriter) {
        let frames = profile.table.frames
        for (number, place) in locations.values.enumerated() {
            writer.message(4) { location in
                location.number(1, number + 1)
                location.number(2, frames[place[0]].image.map { $0 + 1 } ?? 0)
                location.number(3, frames[place[0]].address)
                for frame in place.map({ frames[$0] }) {
                    location.message(4, numbers: frame.function + 1, frame.line ?? 0, frame.column ?? 0)
                }
            }
        }
    }

    private mutating func writeFunctions(to writer: inout ProtobufWriter) {
        for (number, function) in profile.table.functions.enumerated() {
            let (name, symbol) = (index(of: function.name), index(of: function.symbol ?? function.name))
            writer.message(5, numbers: number + 1, name, symbol, index(of: function.file ?? ""))
        }
    }

    private mutating func index(of string: String) -> Int { strings.number(of: string) }
}

/// A gzip file (RFC 1952), which profile.proto requires; stored blocks (RFC 1951, 3.2.4) need no compressor.
enum GzipFile {
    /// The maximum size of a stored block in bytes: its length field has 16 bits.
    private static let blockSize = 0xffff

    static func data(_ contents: [UInt8]) -> [UInt8] {
        var blocks: [UInt8] = []
        blocks.reserveCapacity(contents.count + contents.count / blockSize * 5 + 32)
        for begin in stride(from: 0, to: max(contents.count, 1), by: blockSize) {
            let end = min(begin + blockSize, contents.count)
            blocks.append(end == contents.count ? 1 : 0)
            let length = UInt16(end - begin)
            blocks += littleEndian(length) + littleEndian(~length) + contents[begin..<end]
        }
        var checksum = CRC32()
        checksum.add(contents)
        // Magic, method "deflate", no flags, no time, no extra flags, operating system unknown: the same each time.
        return [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255] + blocks + littleEndian(checksum.value)
            + littleEndian(UInt32(truncatingIfNeeded: contents.count))
    }
}
