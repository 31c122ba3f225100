internal import CLinux
import Glibc

/// Turns symbols into the names that a developer wrote.
enum Demangler {
    /// The short form of a mangled Swift or C++ name; any other name as it is.
    static func functionName(_ symbol: String) -> String {
        demangle(symbol, with: clinux_demangle) ?? symbol
    }

    /// The long form of a mangled Swift name, which has the modules in it; `nil` for any other name.
    static func longName(_ symbol: String) -> String? {
        demangle(symbol, with: clinux_demangle_long)
    }

    /// Longest symbol that is demangled.
    ///
    /// Longer ones are what runaway generics make, and nobody can read their names.
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
