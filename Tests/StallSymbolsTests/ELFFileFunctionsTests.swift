import Glibc
import Testing
import TestSupport

@testable import StallReports
@testable import StallSymbols

@Suite struct ELFFunctionsTests {
    private let directory = TemporaryDirectory.ofTest()

    private func functions(
        _ bytes: some Sequence<UInt8>, where isWanted: (String) -> Bool
    ) throws -> [String: Range<UInt64>] {
        let file = try ELFFile(path: try directory.write("image", bytes))
        return Dictionary(try file.functions(where: isWanted).map { ($0.name, $0.addresses) }) { first, _ in first }
    }

    @Test func `wanted functions are found with their addresses`() throws {
        let elf = SmallELF(symbols: [
            .init(name: "read", address: 0x1000, size: 0x20), .init(name: "main", address: 0x2000),
            .init(name: "write", address: 0x3000, binding: UInt8(STB_LOCAL)),
        ])
        #expect(try functions(elf.bytes) { $0 != "main" } == ["read": 0x1000..<0x1020, "write": 0x3000..<0x3010])
    }

    /// The table is read in pieces.
    @Test func allFunctionsOfALongTableAreFound() throws {
        let addresses = (0..<1_000).map { 0x1000 + UInt64($0) * 0x20 }
        let elf = SmallELF(symbols: addresses.map { .init(name: "function\($0)", address: $0) })
        let all = try functions(elf.bytes) { _ in true }
        #expect(all == Dictionary(uniqueKeysWithValues: addresses.map { ("function\($0)", $0..<$0 + 0x10) }))
    }

    private func scan(_ bytes: some Sequence<UInt8>, for wanted: Set<String>) throws -> [String: Range<UInt64>] {
        let file = try ELFFile(path: try directory.write("image", bytes))
        let found = try file.scanFunctions { wanted.contains(String(decoding: $0, as: UTF8.self)) }
        return Dictionary(found.map { ($0.name, $0.addresses) }) { first, _ in first }
    }

    @Test func wantedFunctionsAreFoundAmongMany() throws {
        let symbols = (0..<30_000).map {
            SmallELF.Symbol(name: "a_function_with_a_long_name_\($0)", address: 0x1000 + UInt64($0) * 0x20)
        }
        let bytes = SmallELF(symbols: symbols).bytes
        // More than one read returns.
        #expect(bytes.count > ELFFile.nameScanBytes)
        let wanted = [0, 12_345, 29_999].map { symbols[$0] }
        let expected = wanted.map { ($0.name, $0.address..<$0.address + 0x10) }
        #expect(try scan(bytes, for: Set(wanted.map(\.name))) == Dictionary(uniqueKeysWithValues: expected))
    }

    @Test func `other symbols and endless functions are ignored`() throws {
        let elf = SmallELF(symbols: [
            .init(name: "assembly", address: 0x1000, size: 0), .init(name: "endless", address: 0x1000, size: .max),
            .init(name: "data", address: 0x1000, type: UInt8(STT_OBJECT)),
            .init(name: "elsewhere", address: 0x1000, section: 0),
        ])
        for image in [elf, SmallELF()] {
            #expect(try functions(image.bytes) { _ in true }.isEmpty)
            #expect(try scan(image.bytes, for: ["assembly", "endless", "data", "elsewhere"]).isEmpty)
        }
    }

    @Test func aFileThatIsCutAnywhereIsAnError() throws {
        let bytes = SmallELF(symbols: [.init(name: "main", address: 0x1000)]).bytes
        for length in 0..<bytes.count {
            let cut = bytes.prefix(length)
            #expect(throws: StallWatchError.self, "cut to \(length)") { try functions(cut) { _ in true } }
            #expect(throws: StallWatchError.self, "cut to \(length)") { try scan(cut, for: ["main"]) }
        }
    }

    @Test func damagedFileNeverCrashes() throws {
        let bytes = SmallELF(symbols: (0..<20).map { .init(name: "f\($0)", address: 0x1000 + UInt64($0) * 0x10) }).bytes
        var generator = SeededGenerator(seed: 19)
        for _ in 0..<2_000 {
            var damaged = Array(bytes)
            for _ in 0..<3 {
                damaged[Int.random(in: 16..<damaged.count, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            let found = (try? scan(damaged, for: Set((0..<20).map { "f\($0)" }))) ?? [:]
            #expect(found.values.allSatisfy { $0.lowerBound < $0.upperBound })
        }
    }
}
