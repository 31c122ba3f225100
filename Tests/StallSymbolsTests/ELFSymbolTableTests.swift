import Glibc
import Testing
import TestSupport

@testable import StallReports
@testable import StallSymbols

@Suite struct ELFSymbolTableTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `a number that the program has closed and used again stays open`() throws {
        let bytes = SmallELF(symbols: []).bytes
        var file: ELFFile? = try ELFFile(path: try directory.write("closed", bytes))
        let number = try #require(file?.descriptor)
        let other = open(try directory.write("other", bytes), O_RDONLY | O_CLOEXEC)
        // In one step, so that no other test gets the number.
        #expect(dup2(other, number) == number)
        #expect(throws: StallWatchError.self) { try file?.size() }
        #expect(lseek(other, 0, SEEK_CUR) == 0, "the program goes on where it was")
        file = nil
        #expect(fcntl(number, F_GETFD) >= 0)
        close(number)
        close(other)
    }

    private func table(_ bytes: [UInt8]) throws -> ELFSymbolTable {
        try ELFSymbolTable(file: ELFFile(path: try directory.write("image", bytes)))
    }

    /// What a file's symbols are, and the names that these addresses have.
    private let choices: [(rule: String, elf: SmallELF, names: [(address: UInt64, name: String?)])] = [
        (
            "a function reaches from its address to its size",
            SmallELF(symbols: [
                .init(name: "second", address: 0x2000, size: 0x20), .init(name: "first", address: 0x1000, size: 0x10),
            ]),
            [
                (0, nil), (0xfff, nil), (0x1000, "first"), (0x100f, "first"), (0x1010, nil), (0x1fff, nil),
                (0x2000, "second"), (0x201f, "second"), (0x2020, nil), (.max, nil),
            ]
        ),
        (
            "a function without a size reaches to the next",
            SmallELF(symbols: [
                .init(name: "assembly", address: 0x1000, size: 0), .init(name: "next", address: 0x1100, size: 0x10),
            ]), [(0x10ff, "assembly"), (0x1100, "next"), (0x1110, nil)]
        ),
        // Code after the section, such as the PLT behind `.init`, does not belong to the function.
        (
            "a function without a size ends with its section",
            SmallELF(
                symbols: [.init(name: "_init", address: 0x1000, size: 0), .init(name: "main", address: 0x3000)],
                code: 0x1000..<0x1020),
            [(0x1000, "_init"), (0x101f, "_init"), (0x1020, nil), (0x2fff, nil), (0x3000, "main")]
        ),
        // In a stripped executable all local functions after `main` would have its name.
        (
            "an exported function without a size reaches nowhere",
            SmallELF(dynamicSymbols: [
                .init(name: "main", address: 0x1000, size: 0), .init(name: "next", address: 0x1100, size: 0x10),
            ]), [(0x1000, "main"), (0x1001, nil), (0x10ff, nil), (0x1100, "next"), (0x1110, nil)]
        ),
        (
            "of several names the global one is used, then the weak one",
            SmallELF(symbols: [
                .init(name: "local", address: 0x1000, binding: UInt8(STB_LOCAL)),
                .init(name: "weak", address: 0x1000, binding: UInt8(STB_WEAK)),
                .init(name: "global", address: 0x1000, binding: UInt8(STB_GLOBAL)),
                .init(name: "other local", address: 0x2000, binding: UInt8(STB_LOCAL)),
                .init(name: "other weak", address: 0x2000, binding: UInt8(STB_WEAK)),
                .init(name: "private", address: 0x3000, binding: UInt8(STB_LOCAL)),
            ]), [(0x1000, "global"), (0x2000, "other weak"), (0x3004, "private")]
        ),
        (
            "only defined functions count",
            SmallELF(symbols: [
                .init(name: "data", address: 0x1000, type: UInt8(STT_OBJECT)),
                .init(name: "undefined", address: 0x2000, section: 0), .init(name: "", address: 0x3000),
                .init(name: "resolver", address: 0x4000, type: UInt8(STT_GNU_IFUNC)),
            ]), [(0x1000, nil), (0x2000, nil), (0x3000, nil), (0x4000, "resolver")]
        ),
        // Of an assembler, behind a function of the C library that has no size; and an entry inside of a function.
        (
            "a global name in code is a function, unless another one contains it",
            SmallELF(symbols: [
                .init(name: "frame_dummy", address: 0x1000, size: 0, binding: UInt8(STB_LOCAL)),
                .init(name: "mix_samples", address: 0x1010, size: 0, type: UInt8(STT_NOTYPE)),
                .init(name: "again", address: 0x1020, size: 0, type: UInt8(STT_NOTYPE), binding: UInt8(STB_LOCAL)),
                .init(name: "copy", address: 0x2000, size: 0x40),
                .init(name: "copy_aligned", address: 0x2020, size: 0, type: UInt8(STT_NOTYPE)),
                .init(name: "other", address: 0x3000, size: 0, type: UInt8(STT_NOTYPE), section: 2),
            ]),
            [
                (0x1004, "frame_dummy"), (0x1010, "mix_samples"), (0x1024, "mix_samples"), (0x2004, "copy"),
                (0x2024, "copy"), (0x3000, nil),
            ]
        ),
        (
            "the full table is preferred to the dynamic one",
            SmallELF(
                symbols: [.init(name: "full", address: 0x1000)],
                dynamicSymbols: [.init(name: "dynamic", address: 0x1000)]), [(0x1000, "full")]
        ),
        (
            "a stripped file has its dynamic table",
            SmallELF(symbols: nil, dynamicSymbols: [.init(name: "dynamic", address: 0x1000)]), [(0x1000, "dynamic")]
        ),
        ("a file without a table has no symbols", SmallELF(), [(0, nil), (0x1000, nil), (.max, nil)]),
        (
            "a file without sections has no symbols",
            SmallELF(symbols: [.init(name: "main", address: 0x1000)], sectionCount: 0), [(0x1000, nil)]
        ),
    ]

    @Test func `an address has the name of the function that it is in`() throws {
        for (rule, elf, names) in choices {
            let table = try table(elf.bytes)
            for (address, name) in names { #expect(table.symbol(at: address)?.name == name, "\(rule): \(address)") }
        }
    }

    /// It is longer than what is read at first.
    @Test func `a name may be long`() throws {
        let name = String(repeating: "x", count: 100_000)
        let symbol = try table(SmallELF(symbols: [.init(name: name, address: 0x1000)]).bytes).symbol(at: 0x1004)
        #expect(symbol == ELFSymbolTable.Symbol(name: name, address: 0x1000))
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

    @Test func `a file without sections has its build ID in its segments`() throws {
        var bytes = SmallELF(sectionCount: 0).bytes
        let note: [UInt8] = [4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0] + Array("GNU\0".utf8) + [0xab, 0xcd, 0xef, 1]
        let start = UInt64(bytes.count)
        // The place of the program headers, and their number.
        withUnsafeBytes(of: start.littleEndian) { bytes.replaceSubrange(32..<40, with: $0) }
        bytes[56] = 1
        // Type, place, two addresses, two sizes, alignment; the header has 56 bytes.
        let header = [UInt64(PT_NOTE), start + 56, 0, 0, UInt64(note.count), UInt64(note.count), 4]
        for word in header { withUnsafeBytes(of: word.littleEndian) { bytes += $0 } }
        #expect(try ELFFile(path: try directory.write("image", bytes + note)).buildID() == "abcdef01")
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

    @Test(arguments: [(4, nil), (5, nil), (0xffff, nil), (UInt32.max, nil), (nil, 0xffff)] as [(UInt32?, UInt16?)])
    func `a string table or a section that is not there is an error`(link: UInt32?, sections: UInt16?) throws {
        let elf = SmallELF(symbols: [.init(name: "main", address: 0x1000)], link: link, sectionCount: sections)
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

    @Test("takes no address, and the whole address space")
    func extremes() {
        #expect(AddressIndex(addresses: []).lastBegun(before: .max).isEmpty)
        #expect(AddressIndex(addresses: []).firstBegun(after: 0) == nil)
        let index = AddressIndex(addresses: [.init(address: .max, number: 1), .init(address: 0, number: 2)])
        #expect(index.lastBegun(before: .max) == [1])
        #expect(index.lastBegun(before: .max - 1) == [2])
        #expect(index.lastBegun(before: 0) == [2])
    }
}
