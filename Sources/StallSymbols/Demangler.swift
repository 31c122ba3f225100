internal import CLinux
import Glibc
import StallReports

/// Converts symbols to the names in the source.
enum Demangler {
    /// The short form of a mangled Swift, C++ or older Rust name; any other name as it is.
    ///
    /// Functions merged by the optimizer get one of their names after "merged", a top-level closure its module's.
    static func functionName(_ symbol: String) -> String {
        guard var name = demangle(coroutine(in: symbol) ?? symbol, isLong: false) else { return symbol }
        if name.utf8.last == UInt8(ascii: " ") { name.removeLast() }
        if name.hasSuffix(" in"), let module = SwiftModule.of(symbol) { name += " " + module }
        // The linker's and the code generator's additions come after a period, which no mangled name has.
        let mangled = symbol.utf8.prefix { $0 != UInt8(ascii: ".") }
        let isMerged = symbol.hasPrefix("$") && mangled.suffix(mergedOperator.count).elementsEqual(mergedOperator)
        return isMerged ? "merged " + name : withoutHash(name, of: symbol)
    }

    /// Returns a Rust function's name without the hash at its end, which is another one in each version of its crate.
    ///
    /// Rust's older symbols are C++ names with a last part of 17 characters: `_ZN5notes4save17h0123456789abcdefE`.
    private static func withoutHash(_ name: String, of symbol: String) -> String {
        guard symbol.hasPrefix("_ZN"), symbol.containsBytes(of: "17h") else { return name }
        let hash = name.utf8.suffix(19)
        let digits = hash.dropFirst(3)
        let isHexadecimal = digits.allSatisfy { byte in
            UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
        }
        guard hash.starts(with: "::h".utf8), isHexadecimal,
            symbol.contains("17h" + String(decoding: digits, as: UTF8.self) + "E")
        else { return name }
        return String(name[..<hash.startIndex])
    }

    /// Returns the symbol of the coroutine that a function of GCC's runs: its parameter's type is named after it.
    private static func coroutine(in symbol: String) -> String? {
        guard symbol.hasPrefix("_Z"), symbol.utf8.count <= maximumSymbolBytes else { return nil }
        let parts = symbol.split(separator: ".")
        guard parts.count > 2, parts[1] == "Frame", ["actor", "destroy"].contains(parts[2]) else { return nil }
        return parts[0].indices.last { parts[0][$0...].hasPrefix("_Z") }.map { String(parts[0][$0...]) }
    }

    /// How the mangled name of a merged function ends (docs/ABI/Mangling.rst of the Swift compiler).
    private static let mergedOperator = Array("Tm".utf8)

    /// The long form of a mangled Swift name, which has the modules in it; `nil` for any other name.
    static func longName(_ symbol: String) -> String? { demangle(symbol, isLong: true) }

    /// Whether a Swift function or closure returns a value to its caller; `nil` if its name does not tell.
    static func returnsValue(_ symbol: String) -> Bool? {
        guard symbol.hasPrefix("$"), let name = longName(symbol) else { return nil }
        // `closure #1 (Swift.Int) -> Swift.Bool in App.load() -> ()`: its own type comes first.
        var type = name[...]
        if let closure = name.firstRange(of: "closure #") {
            type = name[closure.upperBound...]
            if let end = type.firstRange(of: " in ") { type = type[..<end.lowerBound] }
        }
        guard let arrow = type.ranges(of: " -> ").last else { return nil }
        return !["()", "Swift.Never"].contains(type[arrow.upperBound...])
    }

    /// Only deeply nested generic types have longer symbols, and their names are unreadable.
    static let maximumSymbolBytes = 16_384
    /// The largest ``ManglingSize/expanded`` of a name that is demangled, which takes some 3 ms then; a byte of the mangled
    /// name can become some 30 of the name.
    static let maximumExpandedSize = 1 << 19
    /// The longest name that is used, in bytes.
    static let maximumNameBytes = 1 << 16

    private static func demangle(_ symbol: String, isLong: Bool) -> String? {
        let isSwift = symbol.hasPrefix("$s") || symbol.hasPrefix("$S")
        guard isSwift || symbol.hasPrefix("_Z"), symbol.utf8.count <= maximumSymbolBytes,
            ManglingSize(symbol, isSwift: isSwift).expanded <= maximumExpandedSize,
            // The C function takes a pointer and a length and keeps neither.
            let result = symbol.withCString({ clinux_demangle($0, symbol.utf8.count, isLong) })
        else { return nil }
        defer { free(result) }
        return strlen(result) <= maximumNameBytes ? String(cString: result) : nil
    }
}

/// An upper bound of the length of a mangled name with all that it refers to: each reference can double it, so that a symbol
/// of 150 bytes may stand for a name of gigabytes.
///
/// It parses no more than references, because what number *n* stands for is complete before the first reference to *n* or a
/// higher number, and so is no longer than all that comes before that place. Where a byte may be part of an identifier or
/// not, it counts as a reference. The formats: docs/ABI/Mangling.rst of Swift; Itanium C++ ABI, "Mangling".
struct ManglingSize {
    /// In bytes of the mangled name, with what references stand for in their place; at most one over the limit.
    private(set) var expanded = 0
    /// For each number, the length at the first reference to it or to a higher one.
    private var referred: [Int] = []
    private var longestIdentifier = 1
    /// How often what follows may be repeated: the pattern of a C++ parameter pack, once for each of its elements.
    private var repetitions = 1
    private let bytes: [UInt8]
    private var place = 2

    init(_ symbol: String, isSwift: Bool) {
        bytes = Array(symbol.utf8)
        while place < bytes.count, expanded <= Demangler.maximumExpandedSize {
            place += 1
            add(1)
            switch (UnicodeScalar(bytes[place - 1]), isSwift) {
            case ("0"..."9", true): readSwiftNumber(from: place - 1)
            case ("A", true): readSwiftReferences()
            case ("0"..."9", false):
                let length = number(from: place - 1)
                // Before an E it may be a literal.
                if next != "E" { skipIdentifier(length) }
            case ("S", false), ("T", false): readReference()
            case ("D", false) where next == "p":
                // `DpT_`, also with O, R, K, V or P, stands for the elements; another pattern is repeated for each.
                let pattern = bytes[(place + 1)...].drop { "ORKVP".utf8.contains($0) }
                if pattern.first != UInt8(ascii: "T") { repetitions = place }
            default: break
            }
        }
    }

    private var next: UnicodeScalar { UnicodeScalar(place < bytes.count ? bytes[place] : 0) }

    private mutating func add(_ count: Int, times: Int = 1) {
        // None of them is larger than a million, so this does not overflow.
        expanded = min(expanded + count * times * repetitions, Demangler.maximumExpandedSize + 1)
    }

    /// Adds what number `index` stands for; the number of an entry is lower than its place.
    private mutating func refer(to index: Int, times: Int = 1) {
        guard index < place else { return }
        while referred.count <= index { referred.append(expanded) }
        add(referred[index], times: times)
    }

    /// Reads digits from `start` on, and moves behind them; larger numbers than a million mean nothing in a name.
    private mutating func number(from start: Int, radix: Int = 10) -> Int {
        place = start
        var value = 0
        while case let byte = next.value, ("0"..."9") ~= next || radix == 36 && ("A"..."Z") ~= next {
            value = min(value * radix + Int(byte) - (byte < 0x41 ? 0x30 : 0x41 - 10), 1_000_000)
            place += 1
        }
        return value
    }

    private mutating func skipIdentifier(_ length: Int) {
        guard length <= bytes.count - place else { return }
        add(length)
        longestIdentifier = max(longestIdentifier, length)
        place += length
    }

    /// Reads the rest of `S_`, `S1Z_`, `T_` or `T0_`, in C++.
    private mutating func readReference() {
        let start = place
        let index = number(from: start, radix: 36)
        guard next == "_" else {
            place = start
            return
        }
        if bytes[start - 1] == UInt8(ascii: "S") {
            refer(to: place == start ? 0 : index + 1)
        } else {
            // An argument of the last template: of which one, only a parser would know.
            add(expanded)
        }
        place += 1
    }

    /// Reads an identifier, or another number.
    private mutating func readSwiftNumber(from start: Int) {
        if bytes[start] == UInt8(ascii: "0") { return readIdentifierOfWords() }
        let length = number(from: start)
        // `S2i` stands for two times Int, and the digit of `Tg5` for a pass of the optimizer.
        if bytes[start - 1] == UInt8(ascii: "S") { return add(length, times: 4) }
        // `33_` and 32 digits make the names of what is private to a file unique. Before a `_` others may be an index.
        let isPrivate = length == 33 && bytes[place...].dropFirst().prefix(32).allSatisfy { $0 < UInt8(ascii: "G") }
        if isPrivate || next != "_" && bytes[start - 2] != UInt8(ascii: "T") { skipIdentifier(length) }
    }

    /// Reads `0aB5Notes`, in which a letter stands for a word of an earlier identifier, up to a capital one; or `00`, after
    /// which an identifier is in Punycode.
    private mutating func readIdentifierOfWords() {
        var mayHaveWords = next != "0"
        if !mayHaveWords { place += 1 }
        repeat {
            while mayHaveWords, case let letter = next, ("a"..."z") ~= letter || ("A"..."Z") ~= letter {
                mayHaveWords = letter >= "a"
                add(longestIdentifier)
                place += 1
            }
            if next == "0" {
                place += 1
                return
            }
            let length = number(from: place)
            guard length > 0 else { return }
            skipIdentifier(length)
        } while mayHaveWords
    }

    /// Reads the rest of `AA`, `AbC`, `A2b`, `A12_`: numbers below 26 as letters of which the last one is a capital, with
    /// how often before them, and others before a `_`.
    private mutating func readSwiftReferences() {
        var times = -1
        let start = place
        while true {
            let letter = next
            switch letter {
            case "0"..."9":
                times = number(from: place)
                continue
            case "a"..."z": refer(to: Int(letter.value) - 0x61, times: max(times, 1))
            case "A"..."Z": refer(to: Int(letter.value) - 0x41, times: max(times, 1))
            case "_": refer(to: times + 27)
            default:
                // No reference, but the end of another operator or of an identifier.
                place = start
                return
            }
            place += 1
            times = -1
            if letter < "a" || letter == "_" { return }
        }
    }
}
