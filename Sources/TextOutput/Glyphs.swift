import Glibc

/// The characters that the user's locale has.
package enum LocaleCharacters {
    /// Whether text may have characters outside ASCII in this process's locale.
    package static let areUnicode = areUnicode { name in getenv(name).map { String(cString: $0) } }

    /// Decides by the first of LC_ALL, LC_CTYPE and LANG that is not empty (locale(7)).
    ///
    /// Without any of them, as in most containers, the terminal outside has UTF-8 all the same.
    package static func areUnicode(_ variable: (String) -> String?) -> Bool {
        let values = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(variable)
        guard let locale = values.first(where: { !$0.isEmpty })?.lowercased() else { return true }
        return locale.contains("utf-8") || locale.contains("utf8")
    }
}

extension String {
    /// Bars, branches and signs that the tool draws, and ASCII characters of the same width.
    private static let ascii: [Unicode.Scalar: String] = [
        "█": "#", "▓": "=", "░": ".", "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*",
        "├": "|", "└": "`", "│": "|", "─": "-", "×": "x", "≈": "~", "±": "~", "→": ">", "←": "<", "µ": "u", "·": ".",
    ]

    /// The text for a locale without UTF-8: drawn in ASCII; other characters, as in names, stay.
    ///
    /// An ellipsis that cuts a word becomes `~`, so that lines keep their width, and another one three dots.
    package var drawnInASCII: String {
        guard !utf8.allSatisfy({ $0 < 0x80 }) else { return self }
        var text = String.UnicodeScalarView()
        var last: Unicode.Scalar = " "
        for scalar in unicodeScalars {
            if scalar == "…" {
                text.append(contentsOf: (last == " " || last == "\n" ? "..." : "~").unicodeScalars)
            } else if let plain = Self.ascii[scalar] {
                text.append(contentsOf: plain.unicodeScalars)
            } else {
                text.append(scalar)
            }
            last = scalar
        }
        return String(text)
    }
}
