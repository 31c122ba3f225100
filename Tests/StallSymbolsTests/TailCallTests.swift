import Glibc
import TestSupport
import Testing

@testable import StallReports
@testable import StallSymbols

/// Functions that left no frame, because they ended in a jump.
@Suite struct TailCallTests {
    // MARK: The instruction

    @Test func `a direct call of x86-64 leads to its target`() {
        let machine = UInt16(EM_X86_64)
        #expect(DirectBranch.call.target(of: [0xe8, 0x10, 0, 0, 0], at: 0x1000, machine: machine) == 0x1015)
        #expect(DirectBranch.call.target(of: [0xe8, 0xfb, 0xff, 0xff, 0xff], at: 0x1000, machine: machine) == 0x1000)
        #expect(DirectBranch.jump.target(of: [0xe9, 0xfb, 0xfe, 0xff, 0xff], at: 0x1000, machine: machine) == 0xf00)
        // jmp; the end of call *0x10(%rip); call *%rax after a mov; too few bytes.
        for code in [[0xe9, 0x10, 0, 0, 0], [0x15, 0x10, 0, 0, 0], [0x48, 0x89, 0xc7, 0xff, 0xd0], [0xe8, 0, 0, 0]] {
            #expect(DirectBranch.call.target(of: code.map(UInt8.init), at: 0x1000, machine: machine) == nil)
        }
    }

    @Test func `a direct call of aarch64 leads to its target`() {
        let machine = UInt16(EM_AARCH64)
        // bl .+0x40, bl .-4, b .+0x40
        #expect(DirectBranch.call.target(of: [0x10, 0, 0, 0x94], at: 0x1000, machine: machine) == 0x1040)
        #expect(DirectBranch.call.target(of: [0xff, 0xff, 0xff, 0x97], at: 0x1000, machine: machine) == 0xffc)
        #expect(DirectBranch.jump.target(of: [0x10, 0, 0, 0x14], at: 0x1000, machine: machine) == 0x1040)
        // b .+0x40; blr x8
        for code in [[0x10, 0, 0, 0x14], [0, 0x01, 0x3f, 0xd6]] as [[UInt8]] {
            #expect(DirectBranch.call.target(of: code, at: 0x1000, machine: machine) == nil)
        }
        #expect(DirectBranch.call.target(of: [0x10, 0, 0, 0x94], at: 0x1000, machine: UInt16(EM_RISCV)) == nil)
    }

    @Test func `a function passes a call on by a jump at once or at its end`() throws {
        let directory = try TemporaryDirectory()
        func targets(_ code: [UInt8]) throws -> [UInt64?] {
            var image = SmallELF(symbols: [])
            image.instructions = code
            let file = try ELFFile(path: directory.write("image", image.bytes))
            let end = 0x1000 + UInt64(code.count)
            return [file.jumpTarget(at: 0x1000), file.lastTarget(of: .jump, in: 0x1000..<end)]
        }
        let jump: [UInt8] = [0xe9, 0x10, 0, 0, 0]
        let frame = try #require(DirectBranch.emptyFrame(machine: UInt16(EM_X86_64)))
        #expect(try targets(jump) == [0x1015, 0x1015])
        #expect(try targets(frame + jump) == [0x101a, 0x101a])
        #expect(try targets([0x90] + jump) == [nil, 0x1016])
        #expect(try targets(jump + [0x90]) == [0x1015, nil])
        #expect(try targets([0xe9, 0x10]) == [nil, nil])
        #expect(try targets([0xeb, 0x10]) == [0x1012, nil] && targets([0xeb]) == [nil, nil])
    }

    @Test func `an address in the PLT is known by its section`() throws {
        let file = try ELFFile(path: "/proc/self/exe")
        let entries = try #require(try file.namedSections()[".plt"])
        let last = entries.sh_addr + entries.sh_size - 1
        #expect(file.isInLinkageTable(entries.sh_addr) && file.isInLinkageTable(last))
        let code = try #require(try file.namedSections()[".text"])
        #expect(!file.isInLinkageTable(code.sh_addr) && !file.isInLinkageTable(0))
    }

    @Test func `an entry of the PLT jumps through a slot`() {
        let x86 = UInt16(EM_X86_64)
        let jump: [UInt8] = [0xff, 0x25, 0x10, 0, 0, 0]
        #expect(LinkageEntry.slot(of: jump + [0x68, 1], at: 0x1000, machine: x86) == 0x1016)
        #expect(LinkageEntry.slot(of: [0xf3, 0x0f, 0x1e, 0xfa] + jump, at: 0x1000, machine: x86) == 0x101a)
        #expect(LinkageEntry.slot(of: [0xf3, 0x0f, 0x1e, 0xfa, 0xf2] + jump, at: 0x1000, machine: x86) == 0x101b)
        // As mold writes them.
        let number: [UInt8] = [0x41, 0xbb, 7, 0, 0, 0]
        #expect(LinkageEntry.slot(of: number + jump, at: 0x1000, machine: x86) == 0x101c)
        #expect(LinkageEntry.slot(of: [0xf3, 0x0f, 0x1e, 0xfa] + number + jump, at: 0x1000, machine: x86) == 0x1020)
        // push %rbp; call *0x10(%rip); a cut jump; nothing.
        for code in [[0x55, 0x48, 0x89, 0xe5], [0xff, 0x15, 0x10, 0, 0, 0], [0xff, 0x25, 0x10], number, []] as [[UInt8]]
        {
            #expect(LinkageEntry.slot(of: code, at: 0x1000, machine: x86) == nil)
        }
        // adrp x16, .+0x3000; ldr x17, [x16, #0x18], and one page back.
        let load: [UInt8] = [0x11, 0x0e, 0x40, 0xf9]
        let arm = UInt16(EM_AARCH64)
        #expect(LinkageEntry.slot(of: [0x10, 0, 0, 0xf0] + load, at: 0x1234, machine: arm) == 0x4018)
        #expect(
            LinkageEntry.slot(
                of: [0x5f, 0x24, 0x03, 0xd5, 0xf0, 0xff, 0xff, 0xf0] + load, at: 0x1230, machine: arm) == 0x18)
        #expect(LinkageEntry.slot(of: load + load, at: 0x1234, machine: arm) == nil)
    }

    // MARK: The rule

    @Test(
        arguments: [
            // The code is in the function itself, or in another image, or unknown.
            ("$s5notes4saveyyF", 0x1008, "$s5notes4saveyyF", false, false),
            ("$s5notes4saveyyF", nil, "usleep", false, true),
            ("$s5notes4saveyyF", 0x2000, nil, false, false),
            ("$s5notes4saveyyF", 0x2000, "$s5notes5writeyyF", false, true),
            // A cold part, a specialization; a closure in the function and an overload are other functions.
            ("parse", 0x2000, "parse.cold", false, false), ("parse.part.0", 0x2000, "parse", false, false),
            ("$s5notes4saveyyxlF", 0x2000, "$s5notes4saveyyxlFSi_Tg5", false, false),
            ("$s5notes4saveyyF", 0x2000, "$s5notes4saveyyF.cold", false, false),
            ("$s5notes4saveyyF", 0x2000, "$s5notes4saveyyFyycfU_", false, true),
            ("$s5notes4saveyySiF", 0x2000, "$s5notes4saveyySSF", false, true),
            // The code has the name of one of several functions.
            ("$s5notes4saveyyF", 0x2000, "$s5notes4saveyyFTm", true, true),
            ("$s5notes5writeyyF", 0x2000, "$s5notes4saveyyFTm", true, true),
        ] as [(String, UInt64?, String?, Bool, Bool)])
    func `a function has jumped if the code is another function's`(
        symbol: String, address: UInt64?, other: String?, isMerged: Bool, isExpected: Bool
    ) {
        let called = CalledFunction(symbol: symbol, addresses: 0x1000..<0x1010)
        #expect(called.hasJumped(to: .init(address: address, symbol: other, isMerged: isMerged)) == isExpected)
    }

    @Test func `a call names only the first address of one function`() throws {
        let directory = try TemporaryDirectory()
        let image = SmallELF(symbols: [
            .init(name: "save", address: 0x1000), .init(name: "memcpy", address: 0x2000, type: UInt8(STT_GNU_IFUNC)),
            .init(name: "assembly", address: 0x3000, size: 0), .init(name: "$s5notes5firstyyF", address: 0x4000),
            .init(name: "$s5notes6secondyyF", address: 0x4000), .init(name: "_ZN5StoreC1Ev", address: 0x5000),
            .init(name: "_ZN5StoreC2Ev", address: 0x5000),
        ])
        let table = try ELFSymbolTable(file: ELFFile(path: directory.write("image", image.bytes)))
        #expect(table.function(startingAt: 0x1000) == CalledFunction(symbol: "save", addresses: 0x1000..<0x1010))
        #expect(
            [0x1001, 0x2000, 0x3000, 0x4000, 0x6000].map { table.function(startingAt: $0) }
                == Array(repeating: nil, count: 5))
        #expect(table.function(startingAt: 0x5000)?.symbol == "_ZN5StoreC1Ev")
    }

    // MARK: The report

    /// Knows `hash()` at 0x10, its caller `login()` at 0x20, and the function at 0x100 that the caller's call names.
    private final class Program: Symbolicating {
        var hash = CodeLocation(
            symbol: "$s5notes4hashyyF", file: "/src/notes/a.swift", line: 4, directory: "/src/notes")
        let login = CodeLocation(
            symbol: "$s5notes5loginyyF", file: "/src/notes/a.swift", line: 9, directory: "/src/notes")
        var called: CalledFunction? = CalledFunction(symbol: "$s5notes12hashPasswordyyF", addresses: 0x100..<0x120)
        var location = CodeLocation(
            symbol: "$s5notes12hashPasswordyyF", file: "/src/notes/a.swift", line: 7, column: 3,
            declaration: .init(file: "/src/notes/a.swift", line: 6), directory: "/src/notes")
        var sibling: CodeLocation?
        /// Where the sibling is found; `nil`: everywhere.
        var siblingPlace: UInt64?
        /// The functions that others jump to.
        var functions: [CalledFunction] = []
        /// What the call of `login()` reaches through the PLT, and the images that export it.
        var imported: String?
        var exporters: [String] = []

        func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
            ResolvedAddress(locations: [offset == 0x10 ? hash : offset == 0x20 ? login : location])
        }
        func calledFunction(before returnAddress: UInt64, in image: ImageIdentity) -> CalledFunction? {
            returnAddress == 0x21 ? called : nil
        }
        func sibling(of function: CalledFunction, in image: ImageIdentity, deadline: UInt64) -> CodeLocation? {
            siblingPlace.map { $0 == function.addresses.lowerBound } == false ? nil : sibling
        }
        func function(startingAt address: UInt64, in image: ImageIdentity) -> CalledFunction? {
            functions.first { $0.addresses.lowerBound == address }
        }
        func importedSymbol(calledBefore returnAddress: UInt64, in image: ImageIdentity) -> String? {
            returnAddress == 0x21 ? imported : nil
        }
        func exportedFunction(_ symbol: String, of image: ImageIdentity) -> CalledFunction? {
            exporters.contains(image.path) && symbol == imported
                ? CalledFunction(symbol: symbol, addresses: 0x100..<0x120) : nil
        }

        func symbolicate(_ report: StallReport) -> StallReport {
            ReportSymbolication(
                symbolicator: self, functions: FunctionClassifier(InAppSettings()), ownExecutable: nil,
                timeLimit: 1_000_000_000, timeout: 1_000_000_000
            ).symbolicate(report) { _ in }
        }

        func frames(_ change: (inout StallReport) -> Void = { _ in }) throws -> [StallReport.Frame] {
            var report = try StallReport.literal()
            report.images = [
                StallReport.Image(name: "notes", path: "/opt/notes/bin/notes", baseAddress: "0x1", isInApp: true)
            ]
            report.frames = [0x10, 0x20].map { .init(image: 0, offset: .init($0), isInApp: true, kind: .code) }
            report.stacks = [[0, 1]]
            report.samples = Array(report.samples.prefix(1))
            change(&report)
            let named = symbolicate(report)
            #expect(symbolicate(named) == named, "a second symbolication changes nothing")
            #expect(named.fault == nil)
            return named.stacks[0].map { named.frames[$0] }
        }
    }

    private let program = Program()

    @Test func `the called function gets a frame at its declaration`() throws {
        let frames = try program.frames()
        #expect(frames.map(\.function) == ["hash()", "hashPassword()", "login()"])
        #expect(frames.map(\.isTailCall) == [nil, true, nil])
        #expect(frames[1].line == 6 && frames[1].column == nil && frames[1].offset == "0x100" && frames[1].isInApp)
    }

    @Test(
        arguments: [
            (["/opt/notes/lib/vault.so"], 1), (["/opt/notes/lib/vault.so", "/opt/notes/bin/notes"], nil), ([], nil),
            (["/usr/lib/libz.so"], nil),
        ] as [([String], Int?)])
    func `the called function may be another image's`(exporters: [String], image: Int?) throws {
        (program.called, program.imported) = (nil, "$s5notes12hashPasswordyyF")
        program.exporters = exporters
        let addImages = { (report: inout StallReport) in
            report.images += [
                StallReport.Image(name: "vault.so", path: "/opt/notes/lib/vault.so", baseAddress: "0x2", isInApp: true),
                StallReport.Image(name: "ld-linux.so.2", path: "/lib64/ld-linux.so.2", baseAddress: "0x4"),
                StallReport.Image(name: "libz.so", path: "/usr/lib/libz.so", baseAddress: "0x3", isInApp: false),
            ]
        }
        let frames = try program.frames(addImages)
        #expect(frames.count == (image == nil ? 2 : 3))
        #expect(frames.first { $0.isTailCall == true }?.image == image)
        let inLinker = try program.frames { report in
            addImages(&report)
            report.frames[0].image = 2
        }
        #expect(inLinker.count == 2, "the dynamic linker looks the function up")
        program.hash.symbol = program.imported
        #expect(try program.frames(addImages).count == 2, "the code that runs is the called function's")
    }

    @Test func `a symbolication without the files keeps the frame`() throws {
        program.called = nil
        let frames = try program.frames { report in
            report.frames.append(
                StallReport.Frame(
                    image: 0, offset: "0x100", function: "hashPassword()", isTailCall: true, isInApp: true, kind: .code)
            )
            report.stacks = [[0, 2, 1]]
        }
        #expect(frames.map(\.function) == ["hash()", "hashPassword()", "login()"])
    }

    @Test func `a frame that may not be the caller gets no called function`() throws {
        for index in 0...1 {
            #expect(try program.frames { $0.frames[index].isUncertain = true }.count == 2)
            #expect(try program.frames { $0.frames[index].kind = .asyncCaller }.count == 2)
        }
        #expect(try program.frames { $0.images[0].isInApp = false }.count == 2)
        #expect(try program.frames { $0.frames[0].image = nil }.count == 2)
    }

    @Test(arguments: ["$s5notes4hashyyFTA", "$s5notes4hashyyFTm", "$s10Foundation4DatayyF", "$s5notes3AppV5$mainyyFZ"])
    func `a function that no source of the app has is left out`(symbol: String) throws {
        program.called?.symbol = symbol
        #expect(try program.frames().count == 2)
    }

    @Test func `a function without a declaration is left out`() throws {
        program.location.declaration = nil
        #expect(try program.frames().count == 2)
        program.called?.symbol = "wait_for_events"
        program.location.isUnlisted = true
        #expect(try program.frames().count == 2)
    }

    @Test func `a folded function belongs to its module and is blamed`() throws {
        program.called?.destination = 0x8..<0x18
        program.location = CodeLocation(isUnlisted: true)
        #expect(try program.frames().count == 2)
        program.sibling = CodeLocation(
            symbol: "$s5notes4saveyyF", declaration: .init(file: "/src/notes/b.swift", line: 1), directory: "/src/notes"
        )
        let frames = try program.frames()
        #expect(frames.map(\.function) == ["merged hash()", "hashPassword()", "login()"])
        #expect(frames.map(\.compilerGenerated) == [.merged, nil, nil])
        #expect(frames[1].line == nil && frames[1].file == nil && frames[1].isInApp)
        let images = [StallReport.Image(name: "notes", path: "/opt/notes/bin/notes", baseAddress: "0x1", isInApp: true)]
        #expect(StallReport.culprit(of: frames, images: images)?.function == "hashPassword()")

        // Two are folded into a third, one through the other, and are far from the rest of their module.
        program.functions = [CalledFunction(symbol: "$s5notes9hashTokenyyF", addresses: 0x200..<0x202)]
        program.functions[0].destination = program.called?.destination
        program.called?.destination = 0x200..<0x202
        program.siblingPlace = 0x10
        #expect(try program.frames().map(\.function) == ["merged hash()", "hashPassword()", "login()"])
        program.siblingPlace = 0x999
        #expect(try program.frames().count == 2, "the other one has not been called")
        program.siblingPlace = nil

        program.sibling?.declaration?.file = "/src/notes/.build/checkouts/vault/b.swift"
        #expect(try program.frames()[1].isDependency == true)
    }
}
