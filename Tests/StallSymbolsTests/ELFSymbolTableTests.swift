import Glibc
import Testing
import TestSupport

@testable import StallReports
@testable import StallSymbols

@Suite struct ELFSymbolTableTests {
    private let directory = TemporaryDirectory.ofTest()

    private func table(_ bytes: [UInt8]) throws -> ELFSymbolTable {
        try ELFSymbolTable(file: ELFFile(path: try directory.write("image", bytes)))
    }

    private func names(_ table: ELFSymbolTable, _ addresses: UInt64...) -> [String?] {
        addresses.map { table.symbol(at: $0)?.name }
    }

    // MARK: Choice of the symbol

    @Test func aFunctionReachesFromItsAddressToItsSize() throws {
        let table = try table(
            SmallELF(symbols: [
                .init(name: "second", address: 0x2000, size: 0x20), .init(name: "first", address: 0x1000, size: 0x10),
            ]).bytes
        )
        #expect(
            names(table, 0, 0xfff, 0x1000, 0x100f, 0x1010, 0x1fff, 0x2000, 0x201f, 0x2020, .max)
                == [nil, nil, "first", "first", nil, nil, "second", "second", nil, nil]
        )
        #expect(table.symbol(at: 0x2004) == ELFSymbolTable.Symbol(name: "second", address: 0x2000))
    }

    @Test func aFunctionWithoutASizeReachesToTheNext() throws {
        let table = try table(
            SmallELF(symbols: [
                .init(name: "assembly", address: 0x1000, size: 0), .init(name: "next", address: 0x1100, size: 0x10),
            ]).bytes
        )
        #expect(names(table, 0x10ff, 0x1100, 0x1110) == ["assembly", "next", nil])
    }

    /// As `NSLock.lock()` in a static executable, where functions that the compiler has merged have no symbol.
    @Test func `nameless code between a library's functions belongs to it`() throws {
        let symbols: [SmallELF.Symbol] = [
            .init(name: "$s3app4workyyF", address: 0x1000),
            .init(name: "$s10Foundation6NSLockC4lockyyF", address: 0x2000),
            .init(name: "pthread_mutex_lock", address: 0x3000), .init(name: "app_work", address: 0x4000),
        ]
        let table = try table(SmallELF(symbols: symbols).bytes)
        let addresses: [UInt64] = [0x800, 0x1800, 0x2800, 0x3800, 0x4800]
        #expect(addresses.map(table.isAmongLibraries) == [false, false, true, false, false])
        // Between exported functions there may be others.
        let exported = try self.table(SmallELF(dynamicSymbols: symbols).bytes)
        #expect(!exported.isAmongLibraries(0x2800))
    }

    /// Code after the section, such as the PLT behind `.init`, does not belong to the function.
    @Test func aFunctionWithoutASizeEndsWithItsSection() throws {
        let table = try table(
            SmallELF(
                symbols: [.init(name: "_init", address: 0x1000, size: 0), .init(name: "main", address: 0x3000)],
                code: 0x1000..<0x1020
            ).bytes
        )
        #expect(names(table, 0x1000, 0x101f, 0x1020, 0x2fff, 0x3000) == ["_init", "_init", nil, nil, "main"])
    }

    /// In a stripped executable all local functions after `main` would have its name.
    @Test func `an exported function without a size reaches nowhere`() throws {
        let symbols = [
            SmallELF.Symbol(name: "main", address: 0x1000, size: 0), .init(name: "next", address: 0x1100, size: 0x10),
        ]
        let table = try table(SmallELF(dynamicSymbols: symbols).bytes)
        #expect(names(table, 0x1000, 0x1001, 0x10ff, 0x1100, 0x1110) == ["main", nil, nil, "next", nil])
    }

    @Test func aFunctionThatIsNotExportedIsFoundToo() throws {
        let local = SmallELF.Symbol(name: "private", address: 0x1000, binding: UInt8(STB_LOCAL))
        #expect(names(try table(SmallELF(symbols: [local]).bytes), 0x1004) == ["private"])
    }

    @Test func amongSeveralNamesTheGlobalOneIsUsed() throws {
        let table = try table(
            SmallELF(symbols: [
                .init(name: "local", address: 0x1000, binding: UInt8(STB_LOCAL)),
                .init(name: "weak", address: 0x1000, binding: UInt8(STB_WEAK)),
                .init(name: "global", address: 0x1000, binding: UInt8(STB_GLOBAL)),
                .init(name: "other local", address: 0x2000, binding: UInt8(STB_LOCAL)),
                .init(name: "other weak", address: 0x2000, binding: UInt8(STB_WEAK)),
            ]).bytes
        )
        #expect(names(table, 0x1000, 0x2000) == ["global", "other weak"])
    }

    @Test func onlyDefinedFunctionsCount() throws {
        let table = try table(
            SmallELF(symbols: [
                .init(name: "data", address: 0x1000, type: UInt8(STT_OBJECT)),
                .init(name: "undefined", address: 0x2000, section: 0),
                .init(name: "", address: 0x3000),
                .init(name: "resolver", address: 0x4000, type: UInt8(STT_GNU_IFUNC)),
            ]).bytes
        )
        #expect(names(table, 0x1000, 0x2000, 0x3000, 0x4000) == [nil, nil, nil, "resolver"])
    }

    @Test func theFullTableIsPreferredToTheDynamicOne() throws {
        let elf = SmallELF(
            symbols: [.init(name: "full", address: 0x1000)], dynamicSymbols: [.init(name: "dynamic", address: 0x1000)]
        )
        #expect(names(try table(elf.bytes), 0x1000) == ["full"])
    }

    @Test func aStrippedFileHasItsDynamicTable() throws {
        let elf = SmallELF(symbols: nil, dynamicSymbols: [.init(name: "dynamic", address: 0x1000)])
        #expect(names(try table(elf.bytes), 0x1000) == ["dynamic"])
    }

    @Test func aFileWithoutATableHasNoSymbols() throws {
        #expect(names(try table(SmallELF().bytes), 0, 0x1000, .max) == [nil, nil, nil])
    }

    @Test func aFileWithoutSectionsHasNoSymbols() throws {
        let elf = SmallELF(symbols: [.init(name: "main", address: 0x1000)], sectionCount: 0)
        #expect(names(try table(elf.bytes), 0x1000) == [nil])
    }

    // MARK: Files that are not ELF

    private func expectUnreadable(_ path: String, sourceLocation: SourceLocation = #_sourceLocation) {
        let error = #expect(throws: StallWatchError.self, sourceLocation: sourceLocation) {
            _ = try ELFSymbolTable(file: ELFFile(path: path))
        }
        #expect(error?.code == .unreadableImage, sourceLocation: sourceLocation)
        #expect(error?.message.contains(path) == true, sourceLocation: sourceLocation)
    }

    /// Opening a device can have effects, as a tape's or a watchdog's has.
    @Test(arguments: ["/dev/null", "/tmp"]) func `only a regular file is opened`(path: String) {
        let error = #expect(throws: StallWatchError.self) { _ = try ELFFile(path: path) }
        #expect(error?.message == "\(path) is not a regular file")
    }

    @Test(arguments: [0: 0x23, 1: 0, 4: ELFCLASS32, 5: ELFDATA2MSB] as [Int: Int32])
    func anotherKindOfFileIsAnError(place: Int, byte: Int32) throws {
        var bytes = SmallELF(symbols: [.init(name: "main", address: 0x1000)]).bytes
        bytes[place] = UInt8(byte)
        expectUnreadable(try directory.write("image", bytes))
    }

    // MARK: Damaged files

    @Test(arguments: [4, 5, 0xffff, .max] as [UInt32])
    func `a symbol table that names no string table is an error`(link: UInt32) throws {
        let elf = SmallELF(symbols: [.init(name: "main", address: 0x1000)], link: link)
        expectUnreadable(try directory.write("image", elf.bytes))
    }

    @Test func moreSectionsThanThereAreIsAnError() throws {
        let elf = SmallELF(symbols: [.init(name: "main", address: 0x1000)], sectionCount: 0xffff)
        expectUnreadable(try directory.write("image", elf.bytes))
    }

    @Test func aFileThatIsCutAnywhereIsAnError() throws {
        let bytes = SmallELF(symbols: [.init(name: "main", address: 0x1000)]).bytes
        for length in 0..<bytes.count {
            let path = try directory.write("image", bytes.prefix(length))
            #expect(throws: StallWatchError.self, "cut to \(length) of \(bytes.count)") {
                _ = try ELFSymbolTable(file: ELFFile(path: path))
            }
        }
    }
}

@Suite("Address index")
struct AddressIndexTests {
    @Test("finds what a sorted search finds, for any distribution of addresses")
    func agreesWithSortedSearch() {
        var generator = SeededGenerator(seed: 7)
        for count in [1, 2, 7, 8, 9, 100, 3000] {
            for spread in [1, 10, 100_000, UInt64.max] {
                let entries = (0..<count).map {
                    AddressIndex.Entry(address: generator.next() % spread &+ 5, number: UInt32($0))
                }
                let index = AddressIndex(addresses: entries)
                for _ in 0..<50 {
                    let wanted = generator.next() % spread &+ generator.next() % 12
                    let last = entries.filter { $0.address <= wanted }.map(\.address).max()
                    let expected = last.map { last in entries.filter { $0.address == last }.map(\.number) } ?? []
                    #expect(index.lastBegun(before: wanted).sorted() == expected.sorted())
                    let next = entries.filter { $0.address > wanted }.map(\.address).min()
                    #expect(index.firstBegun(after: wanted).map { entries[Int($0)].address } == next)
                }
            }
        }
    }

    @Test("an empty index finds nothing")
    func empty() {
        #expect(AddressIndex(addresses: []).lastBegun(before: .max).isEmpty)
        #expect(AddressIndex(addresses: []).firstBegun(after: 0) == nil)
    }

    @Test("takes the whole address space")
    func extremes() {
        let index = AddressIndex(addresses: [.init(address: .max, number: 1), .init(address: 0, number: 2)])
        #expect(index.lastBegun(before: .max) == [1])
        #expect(index.lastBegun(before: .max - 1) == [2])
        #expect(index.lastBegun(before: 0) == [2])
    }
}
