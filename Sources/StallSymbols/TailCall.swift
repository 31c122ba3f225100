import Glibc
import StallReports

/// The function that the call before a return address names: one that jumped away, or was folded, leaves no frame.
package struct CalledFunction: Sendable, Equatable {
    var symbol: String
    var addresses: Range<UInt64>
    /// The addresses of the function that it jumps to at once, or that it is a thunk of; `nil` if there is none.
    var destination: Range<UInt64>?

    /// The most functions in a row that pass a call on.
    static let maximumThunks = 4

    /// Whether the compiler made the function to pass a call on.
    var isThunk: Bool {
        StallReport.GeneratedCode(function: Demangler.functionName(symbol)) == .thunk
    }

    /// The code that runs in the next frame inwards.
    struct Jumped: Equatable {
        /// The virtual address in the file of the call's image; `nil` if it is in another image.
        var address: UInt64?
        /// The mangled name of the function around the address, not of what was inlined there; `nil` if it is unknown.
        var symbol: String?
        /// Whether several functions share the code, so that ``symbol`` may be another one's.
        var isMerged = false
    }

    /// Returns whether the function went on by a jump, so that it has no frame.
    ///
    /// That is proven if the code is outside of the function, and is not another part or variant of it: a cold part, or a
    /// specialization that the function passes its arguments to.
    func hasJumped(to code: Jumped) -> Bool {
        guard let address = code.address else { return true }
        guard !addresses.contains(address), let other = code.symbol else { return false }
        return code.isMerged || !Self.isSameFunction(symbol, other)
    }

    /// Whether two symbols are of parts or variants of one function of a source.
    private static func isSameFunction(_ symbol: String, _ other: String) -> Bool {
        // Compilers name a part after the function, a period, and a word.
        let (one, two) = (symbol.prefix { $0 != "." }, other.prefix { $0 != "." })
        if one == two { return true }
        // A variant's symbol begins with the function's, and so does that of a closure, which has another name.
        guard one.hasPrefix(two) || two.hasPrefix(one) else { return false }
        let names = [one, two].map { Fingerprint.functionName(Demangler.functionName(String($0))) }
        return names[0] != nil && names[0] == names[1]
    }
}

extension Symbolicating {
    /// Returns the function that the direct call before a return address names, and the number of its image.
    ///
    /// A function of another image is called through the PLT, by its symbol. If the callee has it, none is missing.
    func calledFunction(
        before returnAddress: UInt64, inImage number: Int, of images: [StallReport.Image], to callee: StallReport.Frame,
        identity: (StallReport.Image) -> ImageIdentity
    ) -> (function: CalledFunction, image: Int)? {
        let caller = identity(images[number])
        if let called = calledFunction(before: returnAddress, in: caller) { return (called, number) }
        // At the first call the PLT leads to the dynamic linker, which looks the function up.
        guard callee.image.map({ images.indices.contains($0) && images[$0].name.hasPrefix("ld-") }) != true,
            let symbol = importedSymbol(calledBefore: returnAddress, in: caller), symbol != callee.symbol
        else { return nil }
        let found = images.indices.compactMap { index in
            images[index].isInApp == true
                ? exportedFunction(symbol, of: identity(images[index])).map { ($0, index) } : nil
        }
        // Of several, the dynamic linker takes one that the report does not tell.
        return found.count == 1 ? found[0] : nil
    }
}

/// A call or a jump with its target in the instruction.
enum DirectBranch {
    case call, jump

    /// The length of the instruction in bytes; `nil` for a machine that is not known.
    static func length(machine: UInt16) -> UInt64? {
        switch Int32(machine) {
        case EM_X86_64: 5
        case EM_AARCH64: 4
        default: nil
        }
    }

    /// The instructions that make and give back a frame; `nil` for a machine that is not known.
    static func emptyFrame(machine: UInt16) -> [UInt8]? {
        switch Int32(machine) {
        // push %rbp; mov %rsp, %rbp; pop %rbp
        case EM_X86_64: [0x55, 0x48, 0x89, 0xe5, 0x5d]
        // stp x29, x30, [sp, #-16]!; mov x29, sp; ldp x29, x30, [sp], #16
        case EM_AARCH64: [0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0, 0x91, 0xfd, 0x7b, 0xc1, 0xa8]
        default: nil
        }
    }

    /// Returns the address that the instruction at `start` leads to; `nil` if it is another instruction.
    ///
    /// On x86-64 a longer, indirect call may end like a direct one: its target hardly ever begins a function.
    func target(of code: [UInt8], at start: UInt64, machine: UInt16) -> UInt64? {
        guard let length = Self.length(machine: machine), code.count == Int(length) else { return nil }
        // Inside: in both kinds the last four bytes are a word.
        let word = code.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: code.count - 4, as: UInt32.self) }
        if Int32(machine) == EM_X86_64 {
            // call rel32 and jmp rel32, relative to the next instruction (Intel's manual, volume 2).
            guard code[0] == (self == .call ? 0xe8 : 0xe9) else { return nil }
            return start &+ length &+ UInt64(bitPattern: Int64(Int32(bitPattern: word)))
        }
        // bl and b: six bits and a signed number of words, relative to the instruction (Arm's manual, C6.2).
        guard word >> 26 == (self == .call ? 0b100101 : 0b000101) else { return nil }
        let words = Int64(Int32(bitPattern: word << 6) >> 6)
        return start &+ UInt64(bitPattern: words * 4)
    }
}

extension ELFFile {
    /// Returns where the direct jump at `address`, or behind an empty frame there, leads; `nil` without one.
    func jumpTarget(at address: UInt64) -> UInt64? {
        guard let machine = try? header().e_machine, let frame = DirectBranch.emptyFrame(machine: machine) else {
            return nil
        }
        let isFramed = code(at: address, atMost: UInt64(frame.count)) == frame
        let start = isFramed ? address &+ UInt64(frame.count) : address
        if let target = target(of: .jump, at: start, machine: machine) { return target }
        // jmp rel8, which the linker or assembler chooses if the target is near.
        guard Int32(machine) == EM_X86_64, let code = code(at: start, atMost: 2), code.count == 2, code[0] == 0xeb
        else {
            return nil
        }
        return start &+ 2 &+ UInt64(bitPattern: Int64(Int8(bitPattern: code[1])))
    }

    /// Returns the virtual address that the direct call or jump at the end of `code` leads to; `nil` if there is none.
    func lastTarget(of branch: DirectBranch, in code: Range<UInt64>) -> UInt64? {
        guard let machine = try? header().e_machine, let length = DirectBranch.length(machine: machine),
            code.upperBound - code.lowerBound >= length
        else { return nil }
        return target(of: branch, at: code.upperBound - length, machine: machine)
    }

    private func target(of branch: DirectBranch, at start: UInt64, machine: UInt16) -> UInt64? {
        guard let length = DirectBranch.length(machine: machine), let code = code(at: start, atMost: length) else {
            return nil
        }
        return branch.target(of: code, at: start, machine: machine)
    }

    /// Returns the instructions from the virtual address `start` on, up to the end of their section.
    private func code(at start: UInt64, atMost count: UInt64) -> [UInt8]? {
        let section = try? sections().first {
            $0.sh_flags & UInt64(SHF_EXECINSTR) != 0 && $0.sh_type != UInt32(SHT_NOBITS) && start >= $0.sh_addr
                && start - $0.sh_addr < $0.sh_size
        }
        guard let section else { return nil }
        let (offset, overflow) = section.sh_offset.addingReportingOverflow(start - section.sh_addr)
        let length = min(count, section.sh_size - (start - section.sh_addr))
        return overflow ? nil : try? bytes(at: offset, count: length, atMost: Int(count))
    }
}

/// An entry of the procedure linkage table (PLT), which jumps to a function that the dynamic linker has found.
enum LinkageEntry {
    static let maximumBytes: UInt64 = 17

    /// Returns the address of the word with the function's address; `nil` if the code at `start` is no entry.
    static func slot(of code: [UInt8], at start: UInt64, machine: UInt16) -> UInt64? {
        let word = { (place: Int) -> UInt32? in
            guard place + 4 <= code.count else { return nil }
            return code.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: place, as: UInt32.self) }
        }
        if Int32(machine) == EM_X86_64 {
            // endbr64, mold's mov $number,%r11d and bnd, if they are there, and jmp *rel32(%rip).
            var place = word(0) == 0xfa1e_0ff3 ? 4 : 0
            if place < code.count, code[place...].starts(with: [0x41, 0xbb]) { place += 6 }
            if place < code.count, code[place] == 0xf2 { place += 1 }
            guard place < code.count, code[place...].starts(with: [0xff, 0x25]), let offset = word(place + 2) else {
                return nil
            }
            return start &+ UInt64(place + 6) &+ UInt64(bitPattern: Int64(Int32(bitPattern: offset)))
        }
        // bti c, if it is there, adrp x16 and ldr x17, [x16, #…] (Arm's manual, C6.2).
        let place = word(0) == 0xd503_245f ? 4 : 0
        guard Int32(machine) == EM_AARCH64, let page = word(place), let load = word(place + 4),
            page & 0x9f00_001f == 0x9000_0010, load & 0xffc0_03ff == 0xf940_0211
        else { return nil }
        let pages = Int64(Int32(bitPattern: page << 8) >> 13) * 4 + Int64(page >> 29 & 3)
        let base = (start &+ UInt64(place)) & ~0xfff
        return base &+ UInt64(bitPattern: pages << 12) &+ UInt64(load >> 10 & 0xfff) * 8
    }
}

extension ELFFile {
    /// Whether an address is in a PLT, whose entries have no symbols.
    func isInLinkageTable(_ address: UInt64) -> Bool {
        ((try? namedSections()) ?? [:]).contains { name, section in
            (name.hasPrefix(".plt") || name == ".iplt") && address >= section.sh_addr
                && address - section.sh_addr < section.sh_size
        }
    }

    /// The most bytes of relocations, symbols or names for the dynamic linker that are looked through.
    static let maximumLinkageBytes = 32 << 20

    func importedSymbol(calledBefore returnAddress: UInt64) -> String? {
        guard let machine = try? header().e_machine, let target = lastTarget(of: .call, in: 0..<returnAddress),
            let code = code(at: target, atMost: LinkageEntry.maximumBytes),
            let slot = LinkageEntry.slot(of: code, at: target, machine: machine), let sections = try? sections()
        else { return nil }
        // The PLT's relocations are fewer than those of data.
        let tables = sections.filter { $0.sh_type == UInt32(SHT_RELA) && sections.indices.contains(Int($0.sh_link)) }
        for relocations in tables.sorted(by: { $0.sh_size < $1.sh_size }) {
            let symbols = sections[Int(relocations.sh_link)]
            guard symbols.sh_type == Self.dynamicSymbolTable, sections.indices.contains(Int(symbols.sh_link)),
                let number = symbolNumber(at: slot, in: relocations)
            else { continue }
            let size = UInt64(Self.symbolBytes)
            guard number < symbols.sh_size / size,
                let symbol = try? bytes(at: symbols.sh_offset &+ number * size, count: size, atMost: Self.symbolBytes),
                let names = try? bytes(of: sections[Int(symbols.sh_link)], atMost: Self.maximumLinkageBytes)
            else { return nil }
            let start = Int(Self.symbol(0, in: symbol).st_name)
            guard start > 0, start < names.count else { return nil }
            return String(decoding: names[start...].prefix { $0 != 0 }, as: UTF8.self)
        }
        return nil
    }

    /// Returns the number of the symbol whose address the dynamic linker stores at `slot`.
    private func symbolNumber(at slot: UInt64, in section: Elf64_Shdr) -> UInt64? {
        guard let table = try? bytes(of: section, atMost: Self.maximumLinkageBytes) else { return nil }
        return Self.records(of: Elf64_Rela.self, in: table).first { $0.r_offset == slot }.map { $0.r_info >> 32 }
    }

    /// Returns the virtual address of the function that the file exports with that symbol.
    func exportedFunction(_ name: String) -> UInt64? {
        guard let sections = try? sections(),
            let symbols = sections.first(where: { $0.sh_type == Self.dynamicSymbolTable }),
            sections.indices.contains(Int(symbols.sh_link)),
            let table = try? bytes(of: symbols, atMost: Self.maximumLinkageBytes),
            let names = try? bytes(of: sections[Int(symbols.sh_link)], atMost: Self.maximumLinkageBytes)
        else { return nil }
        let wanted = Array(name.utf8) + [0]
        for symbol in Self.records(of: Elf64_Sym.self, in: table) {
            let start = Int(symbol.st_name)
            if symbol.isNamedFunction, start < names.count, names[start...].starts(with: wanted) {
                return symbol.st_value
            }
        }
        return nil
    }
}
