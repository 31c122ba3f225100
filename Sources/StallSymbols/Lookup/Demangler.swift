internal import CLinux
import Glibc

/// Converts symbols to the names in the source.
enum Demangler {
    /// The short form of a mangled Swift or C++ name; any other name as it is.
    ///
    /// A function whose code the optimizer shares among several that are alike has the name of one of them, and the word
    /// "merged" before it, as in the long form: it may have been another one that was called. A closure of top-level code
    /// is in no function; its module stands for that.
    static func functionName(_ symbol: String) -> String {
        guard var name = demangle(symbol, with: clinux_demangle) else { return symbol }
        if name.utf8.last == UInt8(ascii: " ") { name.removeLast() }
        if name.hasSuffix(" in"), let module = SwiftModule.of(symbol) { name += " " + module }
        // The linker's and the code generator's additions come after a period, which no mangled name has.
        let mangled = symbol.utf8.prefix { $0 != UInt8(ascii: ".") }
        let isMerged = symbol.hasPrefix("$") && mangled.suffix(mergedOperator.count).elementsEqual(mergedOperator)
        return isMerged ? "merged " + name : name
    }

    /// How the mangled name of a merged function ends (docs/ABI/Mangling.rst of the Swift compiler).
    private static let mergedOperator = Array("Tm".utf8)

    /// The long form of a mangled Swift name, which has the modules in it; `nil` for any other name.
    static func longName(_ symbol: String) -> String? {
        demangle(symbol, with: clinux_demangle_long)
    }

    /// The length of the longest symbol to demangle, in bytes.
    ///
    /// Only deeply nested generic types have longer ones, and their names are unreadable.
    static let maximumSymbolBytes = 16_384

    private static func demangle(
        _ symbol: String, with function: (UnsafePointer<CChar>, Int) -> UnsafeMutablePointer<CChar>?
    ) -> String? {
        guard symbol.hasPrefix("$s") || symbol.hasPrefix("_Z") || symbol.hasPrefix("$S"),
            symbol.utf8.count <= maximumSymbolBytes
        else { return nil }
        var name = symbol
        return name.withUTF8 { utf8 -> String? in
            guard let base = utf8.baseAddress else { return nil }
            // The C function takes a pointer and a length and keeps neither.
            return base.withMemoryRebound(to: CChar.self, capacity: utf8.count) { characters in
                guard let result = function(characters, utf8.count) else { return nil }
                defer { free(result) }
                return String(cString: result)
            }
        }
    }
}
