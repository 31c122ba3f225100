import Foundation
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallSymbols

/// Damaged ELF files and debug information: any bytes give a result within a bounded time.
///
/// `STALLWATCH_MUTATIONS=200000 swift test --sanitize=address --filter SymbolicationMutationTests` is the long run.
@Suite("Symbolication of mutated files", .needsToolchain)
struct SymbolicationMutationTests {
    private static let environment = ProcessInfo.processInfo.environment
    static let count = environment["STALLWATCH_MUTATIONS"].flatMap { Int($0) } ?? 2000
    static let seed = environment["STALLWATCH_SEED"].flatMap { UInt64($0) } ?? 1

    /// The longest time for one damaged file, also under a sanitizer.
    static let bound: UInt64 = 5_000_000_000

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
            answered += lookUp(path, sites, deadline: begin + Self.bound / 5)
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
            .map { Int($0.value.offset)..<Int($0.value.offset + $0.value.size) }
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
