import Glibc
import TestSupport
import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct ELFFunctionsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func functions(
        _ bytes: some Sequence<UInt8>, where isWanted: (String) -> Bool
    ) throws -> [String: Range<UInt64>] {
        let file = try ELFFile(path: try directory.write("image", bytes))
        return Dictionary(try file.functions(where: isWanted).map { ($0.name, $0.addresses) }) { first, _ in first }
    }

    @Test func wantedFunctionsAreFoundWithTheirAddresses() throws {
        let elf = SmallELF(symbols: [
            .init(name: "read", address: 0x1000, size: 0x20), .init(name: "main", address: 0x2000),
            .init(name: "write", address: 0x3000, binding: UInt8(STB_LOCAL)),
        ])
        #expect(
            try functions(elf.bytes) { $0 != "main" } == ["read": 0x1000..<0x1020, "write": 0x3000..<0x3010])
    }

    /// The table is read in pieces.
    @Test func allFunctionsOfALongTableAreFound() throws {
        let addresses = (0..<1_000).map { 0x1000 + UInt64($0) * 0x20 }
        let elf = SmallELF(symbols: addresses.map { .init(name: "function\($0)", address: $0) })
        let all = try functions(elf.bytes) { _ in true }
        #expect(all == Dictionary(uniqueKeysWithValues: addresses.map { ("function\($0)", $0..<$0 + 0x10) }))
    }

    @Test func otherSymbolsAndEndlessFunctionsAreIgnored() throws {
        let elf = SmallELF(symbols: [
            .init(name: "assembly", address: 0x1000, size: 0), .init(name: "endless", address: 0x1000, size: .max),
            .init(name: "data", address: 0x1000, type: UInt8(STT_OBJECT)),
            .init(name: "elsewhere", address: 0x1000, section: 0),
        ])
        #expect(try functions(elf.bytes) { _ in true }.isEmpty)
    }

    @Test func aFileWithoutSymbolsHasNoFunctions() throws {
        #expect(try functions(SmallELF().bytes) { _ in true }.isEmpty)
    }

    @Test func aFileThatIsCutAnywhereIsAnError() throws {
        let bytes = SmallELF(symbols: [.init(name: "main", address: 0x1000)]).bytes
        for length in 0..<bytes.count {
            #expect(throws: StallWatchError.self, "cut to \(length) of \(bytes.count)") {
                _ = try functions(bytes.prefix(length)) { _ in true }
            }
        }
    }
}
