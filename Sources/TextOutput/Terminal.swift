import Glibc

package struct Terminal: Sendable {
    package var isTerminal = false
    /// Columns per line; `nil` for no limit.
    package var width: Int?
    /// Lines that are seen at once; `nil` if it is no terminal, or does not know its size.
    package var height: Int?
    package var hasColor = false

    package static let standardOutput = Terminal(descriptor: STDOUT_FILENO)

    package init(isTerminal: Bool = false, width: Int? = nil, height: Int? = nil, hasColor: Bool = false) {
        self.isTerminal = isTerminal
        self.width = width
        self.height = height
        self.hasColor = hasColor
    }

    private init(descriptor: Int32) {
        let columns = Self.columns(getenv("COLUMNS").map { String(cString: $0) })
        guard isatty(descriptor) == 1 else {
            self.init(width: columns)
            return
        }
        // https://no-color.org: present and not empty.
        let refusesColor = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let size = Self.size(of: descriptor)
        self.init(
            isTerminal: true, width: size?.columns ?? columns ?? 80, height: size?.rows,
            hasColor: Self.obeysSequences && !refusesColor)
    }

    /// Whether a terminal of the kind that TERM names obeys control sequences.
    package static var obeysSequences: Bool {
        getenv("TERM").map { !["", "dumb"].contains(String(cString: $0)) } ?? false
    }

    /// The size of a terminal; `nil` if it does not know its own (0 columns), and has at least 80 columns then.
    package static func size(of descriptor: Int32) -> (columns: Int, rows: Int?)? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : nil)
    }

    /// The width that the variable COLUMNS sets where no terminal says it; `nil` unless it is a number from 1 on.
    package static func columns(_ value: String?) -> Int? { value.flatMap(Int.init).flatMap { $0 > 0 ? $0 : nil } }

    /// A text style (ECMA-48, SGR).
    package enum Style: String, Sendable {
        case bold = "1"
        case faint = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
    }

    package func style(_ text: String, _ styles: Style...) -> String {
        guard hasColor, !styles.isEmpty, !text.isEmpty else { return text }
        return "\u{1b}[\(styles.map(\.rawValue).joined(separator: ";"))m\(text)\u{1b}[0m"
    }
}

package enum LocaleCharacters {
    package static let areUnicode = areUnicode { name in getenv(name).map { String(cString: $0) } }

    /// By the first of LC_ALL, LC_CTYPE and LANG that is not empty (locale(7)); UTF-8 without any, as in containers.
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

    /// Other characters stay; an ellipsis that cuts a word becomes `~`, to keep the width, and another three dots.
    package var drawnInASCII: String {
        guard !utf8.allSatisfy({ $0 < 0x80 }) else { return self }
        var last: Unicode.Scalar = " "
        return mappingScalars { scalar in
            defer { last = scalar }
            guard scalar == "…" else { return Self.ascii[scalar] }
            return last == " " || last == "\n" ? "..." : "~"
        }
    }
}
