internal import CLinux
import Glibc

/// Turns symbols into the names that a developer wrote.
enum Demangler {
    /// The short form of a mangled Swift or C++ name; any other name as it is.
    static func functionName(_ symbol: String) -> String {
        var name = symbol
        guard let demangled = name.withUTF8({ utf8 -> String? in
            guard let base = utf8.baseAddress, symbol.hasPrefix("$s") || symbol.hasPrefix("_Z") || symbol.hasPrefix("$S")
            else { return nil }
            // The C function takes a pointer and a length and keeps neither.
            return base.withMemoryRebound(to: CChar.self, capacity: utf8.count) { characters in
                guard let result = clinux_demangle(characters, utf8.count) else { return nil }
                defer { free(result) }
                return String(cString: result)
            }
        }) else { return symbol }
        return demangled
    }
}
