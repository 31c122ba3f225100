import Glibc
import StallReports

/// A function that the call instruction before a return address names.
///
/// A function that ends in a jump, or whose body the optimizer has folded into another one's, leaves no frame. The call
/// still names it.
package struct CalledFunction: Sendable, Equatable {
    /// The mangled name.
    var symbol: String
    /// The function's virtual addresses in the image's file.
    var addresses: Range<UInt64>
    /// The addresses of the function that it jumps to at once; `nil` if it does something else before.
    var destination: Range<UInt64>?

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

    /// Decodes the instruction.
    ///
    /// On x86-64 the end of a longer, indirect call may look like a direct one. Its target is then hardly ever the first
    /// address of a function.
    ///
    /// - Parameters:
    ///   - code: As many bytes as the instruction has.
    ///   - start: Their address.
    ///   - machine: The file's `e_machine`.
    /// - Returns: The address that the instruction leads to; `nil` if it is another instruction.
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
    /// Returns the virtual address that the direct call before `returnAddress` leads to; `nil` if there is none.
    func callTarget(before returnAddress: UInt64) -> UInt64? {
        guard let machine = try? header().e_machine, let length = DirectBranch.length(machine: machine),
            returnAddress >= length
        else { return nil }
        return target(of: .call, at: returnAddress - length, machine: machine)
    }

    /// Returns the virtual address that the direct jump at `address` leads to; `nil` if there is none.
    func jumpTarget(at address: UInt64) -> UInt64? {
        (try? header().e_machine).flatMap { target(of: .jump, at: address, machine: $0) }
    }

    private func target(of branch: DirectBranch, at start: UInt64, machine: UInt16) -> UInt64? {
        let section = try? sections().first {
            $0.flags & UInt64(SHF_EXECINSTR) != 0 && $0.type != UInt32(SHT_NOBITS) && start >= $0.address
                && start - $0.address < $0.size
        }
        guard let section, let length = DirectBranch.length(machine: machine),
            section.size - (start - section.address) >= length
        else { return nil }
        let (offset, overflow) = section.offset.addingReportingOverflow(start - section.address)
        guard !overflow, let code = try? bytes(at: offset, count: length, atMost: Int(length)) else { return nil }
        return branch.target(of: code, at: start, machine: machine)
    }
}
