import Foundation
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallSymbols
@testable import StallWatch

/// Invalid files: the frame keeps its image and offset, the image has the reason, and nothing crashes.
@Suite("Symbolication of bad input", .needsToolchain)
struct SymbolicationBadInputTests {
    @Test("missing files, and files that are not ELF files")
    func notELF() throws {
        let scratch = SymbolicationToolchain.scratch
        let text = try SymbolicationFixture.write("no ELF file at all", to: "text")
        let empty = try SymbolicationFixture.write("", to: "empty")
        let magic = try SymbolicationFixture.write("\u{7f}ELF", to: "magic")
        let fifo = "\(scratch)/fifo"
        if mkfifo(fifo, 0o600) != 0 { try #require(errno == EEXIST) }
        for path in ["/nowhere/at/all", text, empty, magic, fifo, scratch, "/dev/zero", "/dev/null"] {
            let (answer, reason) = lookUp(0x1234, path)
            #expect(answer.locations == [CodeLocation()], "\(path)")
            #expect(reason?.isEmpty == false, "\(path)")
        }
    }

    @Test("a file that was replaced by another build")
    func replaced() throws {
        let path = try SymbolicationFixture.mixed.get()
        let (answer, reason) = lookUp(try site(), path, buildID: "00112233")
        #expect(answer.locations == [CodeLocation()])
        #expect(reason?.contains("has been replaced: the build ID is another") == true)
    }

    @Test("a file without a build ID that was replaced, or may have been")
    func replacedWithoutBuildID() throws {
        func build(_ function: String) throws -> String {
            let source = try SymbolicationFixture.write("int \(function)(void) { return 1; }\n", to: "\(function).c")
            let path = "\(SymbolicationToolchain.scratch)/\(function).so"
            try SymbolicationToolchain.run(
                "clang", ["-shared", "-fPIC", "-g", "-Wl,--build-id=none", source, "-o", path])
            return path
        }
        let path = try build("first"), file = try ELFFile(path: path), hash = try #require(file.contentHash())
        #expect(try file.buildID() == nil)
        let site = try #require(file.exportedFunction("first"))
        func lookUp(_ hash: String?) -> ResolvedAddress {
            Symbolicator(.lines).lookUp(
                site, in: ImageIdentity(path: path, buildID: nil, contentHash: hash), deadline: .max)
        }
        #expect(lookUp(hash).locations.map(\.symbol) == ["first"])
        #expect(lookUp(nil).locations == [CodeLocation()])
        #expect(rename(try build("other"), path) == 0)
        #expect(lookUp(hash).locations == [CodeLocation()])
    }

    @Test("a file truncated anywhere")
    func truncated() throws {
        let whole = try Data(contentsOf: URL(fileURLWithPath: SymbolicationFixture.mixed.get()))
        let site = try site()
        for part in 1..<40 {
            let path = "\(SymbolicationToolchain.scratch)/cut"
            try whole.prefix(whole.count * part / 40).write(to: URL(fileURLWithPath: path))
            let (answer, reason) = lookUp(site, path)
            #expect(answer.locations.count >= 1)
            #expect(reason != nil)
        }
    }

    @Test("a file that shrinks after it is opened")
    func shrinks() throws {
        let path = "\(SymbolicationToolchain.scratch)/shrinking"
        let whole = try Data(contentsOf: URL(fileURLWithPath: SymbolicationFixture.mixed.get()))
        let site = try site()
        for keep in [0, 64, 4096, whole.count / 2, whole.count - 1] {
            try whole.write(to: URL(fileURLWithPath: path))
            let file = try ELFFile(path: path)
            let names = try ELFSymbolTable(file: file)
            let lines = try DebugInformation(file: file, maximumBytes: 64 << 20)
            #expect(truncate(path, off_t(keep)) == 0)
            // Copied data stays valid; new reads end at the file's new end.
            #expect(lines.locations(at: site, deadline: .max).locations.last?.line != nil)
            _ = names.symbol(at: site)
            // The last byte belongs to the section headers, which have already been read.
            if keep == whole.count - 1 {
                #expect(throws: Never.self) { try DebugInformation(file: file, maximumBytes: 64 << 20) }
            } else {
                #expect(throws: DebugInformation.UnavailableReason.unreadable) {
                    try DebugInformation(file: file, maximumBytes: 64 << 20)
                }
            }
        }
    }

    /// Compresses the debug information with zlib; returns the file and the offset of the compression header.
    private func compress(to name: String) throws -> (path: String, header: UInt64) {
        let path = "\(SymbolicationToolchain.scratch)/\(name)"
        try SymbolicationToolchain.run(
            "llvm-objcopy", ["--compress-debug-sections=zlib", SymbolicationFixture.mixed.get(), path]
        )
        return (path, try #require(try ELFFile(path: path).namedSections()[".debug_info"]).sh_offset)
    }

    @Test("zlib compression gives the same lines")
    func compressed() throws {
        let (answer, reason) = lookUp(try site(), try compress(to: "zlib").path)
        #expect(reason == nil)
        #expect(answer == lookUp(try site(), try SymbolicationFixture.mixed.get()).0)
    }

    @Test(
        "a compression that cannot be undone gives names and a reason",
        arguments: [
            // An invalid number in ch_type and ch_reserved, as zstd's before elfutils 0.189.
            (0, 99, "the debug information is compressed in a way that the installed libdw does not know"),
            // ch_size is the second word of the header: 1 TB.
            (8, 1 << 40, "the debug information is larger than the memory limit"),
        ] as [(UInt64, UInt64, String)])
    func wrongCompression(offset: UInt64, value: UInt64, expected: String) throws {
        let (path, header) = try compress(to: "wrong-\(offset)")
        try overwrite(path, at: header + offset, with: value)
        let (answer, reason) = lookUp(try site(), path)
        #expect(reason == expected)
        #expect(answer.locations.last?.symbol != nil)
    }

    @Test("split DWARF gives names and a reason")
    func split() throws {
        let source = try SymbolicationFixture.write(
            "int leaf(int n) { return n * 3; }\nint main(int n, char **v) { return leaf(n) + leaf(n + 1); }\n",
            to: "split.c"
        )
        let path = "\(SymbolicationToolchain.scratch)/split"
        try SymbolicationToolchain.run("clang", ["-O0", "-g", "-gsplit-dwarf", source, "-o", path])
        let table = try ELFSymbolTable(file: ELFFile(path: path))
        let main = try #require((0x400..<0x4000).first { table.symbol(at: $0)?.name == "main" })
        let (answer, _) = lookUp(UInt64(main), path)
        #expect(answer.locations.map(\.symbol) == ["main"])
        #expect(answer.locations.first?.line == 2)
        #expect(answer.reason == "the debug information is in a separate .dwo file")
    }

    @Test("2 GB of debug information gives names with little time and memory")
    func huge() throws {
        let path = "\(SymbolicationToolchain.scratch)/huge"
        let manager = FileManager.default
        if manager.fileExists(atPath: path) { try manager.removeItem(atPath: path) }
        try manager.copyItem(atPath: SymbolicationFixture.mixed.get(), toPath: path)
        let file = try ELFFile(path: path)
        let header = try file.header()
        let contents = try #require(try file.namedSections()[".debug_info"])
        for index in 0..<UInt64(header.e_shnum) {
            let at = header.e_shoff + index * 64
            let bytes = try file.bytes(at: at, count: 64, atMost: 64)
            let section = bytes.withUnsafeBytes { $0.loadUnaligned(as: Elf64_Shdr.self) }
            guard section.sh_offset == contents.sh_offset, section.sh_size == contents.sh_size else { continue }
            try overwrite(path, at: at + 32, with: UInt64(2) << 30)
        }
        #expect(truncate(path, 3 << 30) == 0)
        let begin = monotonicNow()
        let (answer, reason) = lookUp(try site(), path)
        #expect(reason == "the debug information is larger than the memory limit")
        #expect(answer.locations.last?.symbol != nil)
        // It is not read: that would take many times as long.
        #expect(monotonicNow() - begin < 20_000_000_000)
    }

    @Test("after a timeout, a second lookup gives the rest")
    func outOfTime() throws {
        let path = try SymbolicationFixture.mixed.get()
        let own = try ELFFile(path: path)
        let image = ImageIdentity(path: path, buildID: try own.buildID(), contentHash: own.contentHash())
        let site = try site()
        let symbolicator = Symbolicator(.lines)
        let early = symbolicator.lookUp(site, in: image, deadline: monotonicNow())
        #expect(early.isUnfinished && early.reason == "the time limit was reached", "\(early)")
        #expect(!symbolicator.lookUp(site, in: image, deadline: .max).isUnfinished)
    }

    @Test("a dense line table counts by its memory, not its file size")
    func denseLines() throws {
        let path = "\(SymbolicationToolchain.scratch)/dense"
        let source = try SymbolicationFixture.write(SymbolicationFixture.denseLineTable, to: "dense.s")
        try SymbolicationToolchain.run("clang", [source, "-o", path])
        let file = try ELFFile(path: path)
        let names = try ELFSymbolTable(file: file)
        let main = try #require((0x400..<0x4000).first { names.symbol(at: $0)?.name == "main" })
        // libdw needs 104 MB for a million rows (measured, elfutils 0.188).
        let little = try DebugInformation(file: file, maximumBytes: 100 << 20)
        #expect(little.locations(at: UInt64(main) + 5, deadline: .max).unavailable == .tooLarge)
        #expect(little.memoryBytes < 100 << 20)
        let enough = try DebugInformation(file: file, maximumBytes: 150 << 20)
        let found = enough.locations(at: UInt64(main) + 5, deadline: .max)
        #expect(found.unavailable == nil)
        #expect(found.locations.map(\.line) == [1])
        #expect((104_000_000..<150 << 20).contains(enough.memoryBytes))
    }

    private func site() throws -> UInt64 {
        let path = try SymbolicationFixture.mixed.get()
        return try #require(try CallSites.all(in: path).first { lookUp($0, path).0.locations.last?.line != nil })
    }

    /// Looks up an address with a new symbolicator; returns the result and the image's reason.
    private func lookUp(_ site: UInt64, _ path: String, buildID: String? = nil) -> (ResolvedAddress, String?) {
        let symbolicator = Symbolicator(.lines)
        let known = buildID ?? (try? ELFFile(path: path).buildID())
        let image = ImageIdentity(
            path: path, buildID: known, contentHash: (try? ELFFile(path: path))?.contentHash())
        let answer = symbolicator.lookUp(site, in: image, deadline: .max)
        return (answer, symbolicator.reason(for: image))
    }

    private func overwrite(_ path: String, at offset: UInt64, with value: UInt64) throws {
        let handle = try #require(FileHandle(forUpdatingAtPath: path))
        try handle.seek(toOffset: offset)
        try handle.write(contentsOf: withUnsafeBytes(of: value) { Data($0) })
        try handle.close()
    }
}

/// Damaged ELF files and debug information: any bytes give a result within a bounded time.
///
/// `STALLWATCH_TEST_ROUNDS=500 swift test --sanitize=address --filter SymbolicationMutationTests` is the long run.
@Suite("Symbolication of mutated files", .needsToolchain)
struct SymbolicationMutationTests {
    private static let count = rounds(400)
    private static let seed = ProcessInfo.processInfo.environment["STALLWATCH_SEED"].flatMap { UInt64($0) } ?? 1

    /// The longest time for one damaged file, also under a sanitizer and beside other tests: it ends, and no more.
    static let bound: UInt64 = 60_000_000_000
    /// The time limit of its lookups.
    static let timeLimit: UInt64 = 1_000_000_000

    @Test("no crash and no hang", .timeLimit(.minutes(60)))
    func mutations() throws {
        let original = try SymbolicationFixture.mixed.get()
        let path = "\(SymbolicationToolchain.scratch)/mutated"
        let whole = try [UInt8](Data(contentsOf: URL(fileURLWithPath: original)))
        let sites = try CallSites.all(in: original).filter { $0 % 3 == 0 }.prefix(12)
        let targets = try self.targets(original, size: whole.count)
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        try #require(write(descriptor, whole, whole.count) == whole.count)

        var generator = SeededGenerator(seed: Self.seed)
        var answered = 0
        var slowest: UInt64 = 0
        for _ in 0..<Self.count {
            let target = targets.randomElement(using: &generator) ?? 0..<whole.count
            let places = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                Int.random(in: target, using: &generator)
            }
            for place in places {
                var byte = Self.damage(whole[place], using: &generator)
                try #require(pwrite(descriptor, &byte, 1, off_t(place)) == 1)
            }
            let begin = monotonicNow()
            answered += lookUp(path, sites, deadline: begin + Self.timeLimit)
            slowest = max(slowest, monotonicNow() - begin)
            for place in places {
                var byte = whole[place]
                try #require(pwrite(descriptor, &byte, 1, off_t(place)) == 1)
            }
        }
        print(
            "\(Self.count) mutations: \(answered) answers with a line, the slowest file took \(slowest / 1_000_000) ms")
        // Most damage leaves most of a file readable, so a run without any answer tested nothing.
        #expect(answered > Self.count)
        #expect(slowest < Self.bound)
    }

    /// Returns the parts of the file that are read; each is damaged equally often, whatever its size.
    private func targets(_ path: String, size: Int) throws -> [Range<Int>] {
        let file = try ELFFile(path: path)
        let header = try file.header()
        let table = Int(header.e_shoff)..<Int(header.e_shoff) + Int(header.e_shnum) * 64
        let sections = try file.namedSections()
            .filter { $0.key.hasPrefix(".debug") || [".symtab", ".strtab", ".shstrtab"].contains($0.key) }
            .map { Int($0.value.sh_offset)..<Int($0.value.sh_offset + $0.value.sh_size) }
            .filter { !$0.isEmpty }
            .sorted { $0.lowerBound < $1.lowerBound }
        return [0..<64, table, table, 0..<size] + sections + sections
    }

    /// Returns a damaged byte: boundary values as often as random ones.
    private static func damage(_ byte: UInt8, using generator: inout SeededGenerator) -> UInt8 {
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: 0
        case 1: 0xff
        case 2: byte ^ (1 << UInt8.random(in: 0..<8, using: &generator))
        case 3: byte &+ 1
        case 4: 0x80
        default: UInt8.random(in: .min ... .max, using: &generator)
        }
    }

    private func lookUp(_ path: String, _ sites: some Sequence<UInt64>, deadline: UInt64) -> Int {
        guard let file = try? ELFFile(path: path) else { return 0 }
        _ = try? file.buildID()
        _ = try? file.debugLink()
        let names = try? ELFSymbolTable(file: file)
        let lines = try? DebugInformation(file: file, maximumBytes: 256 << 20)
        return sites.count { site in
            _ = names?.symbol(at: site)
            return lines?.locations(at: site, deadline: deadline).locations.contains { $0.line != nil } ?? false
        }
    }
}
