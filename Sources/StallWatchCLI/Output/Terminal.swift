import Glibc

/// The abilities of standard output.
struct Terminal: Sendable {
    /// Whether it is a terminal.
    var isTerminal = false
    /// Columns per line; `nil` for no limit.
    var width: Int?
    /// Whether to use color.
    var hasColor = false

    /// Standard output.
    static let standardOutput = Terminal(descriptor: STDOUT_FILENO)

    init(isTerminal: Bool = false, width: Int? = nil, hasColor: Bool = false) {
        self.isTerminal = isTerminal
        self.width = width
        self.hasColor = hasColor
    }

    private init(descriptor: Int32) {
        guard isatty(descriptor) == 1 else {
            self.init()
            return
        }
        let type = getenv("TERM").map { String(cString: $0) } ?? "dumb"
        // https://no-color.org: present and not empty.
        let refusesColor = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        var size = winsize()
        // A terminal that does not know its size (0 columns) has at least 80.
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        self.init(
            isTerminal: true, width: isKnown ? Int(size.ws_col) : 80,
            hasColor: type != "dumb" && type != "" && !refusesColor
        )
    }

    /// A text style (ECMA-48, SGR).
    enum Style: String {
        case bold = "1"
        case faint = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
    }

    /// The text in these styles, if color is on.
    func style(_ text: String, _ styles: Style...) -> String {
        guard hasColor, !styles.isEmpty, !text.isEmpty else { return text }
        return "\u{1b}[\(styles.map(\.rawValue).joined(separator: ";"))m\(text)\u{1b}[0m"
    }
}

extension String {
    /// The text without control characters, which a terminal would obey: reports may come from anywhere.
    var printable: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.map { $0.isControl ? "\u{fffd}" : $0 }))
    }

    /// The number of terminal columns it takes.
    var columns: Int {
        utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.columns }
    }

    /// The text in at most `width` columns, with an ellipsis if it is cut.
    func truncated(to width: Int) -> String {
        guard columns > width else { return self }
        guard width > 0 else { return "" }
        var text = ""
        var used = 1
        for character in self {
            used += character.columns
            if used > width { break }
            text.append(character)
        }
        return text + "…"
    }

    /// The text with spaces up to `width` columns.
    func padded(to width: Int, _ alignment: Alignment = .left) -> String {
        let spaces = String(repeating: " ", count: Swift.max(width - columns, 0))
        return alignment == .left ? self + spaces : spaces + self
    }
}

extension Unicode.Scalar {
    /// Whether it is a control of ISO 6429 or changes the text direction.
    fileprivate var isControl: Bool {
        switch value {
        case 0..<0x20, 0x7f..<0xa0, 0x202a...0x202e, 0x2066...0x2069: true
        default: false
        }
    }
}

extension Character {
    /// 2 for the wide characters of East Asia and for emoji (Unicode Standard Annex 11), else 1.
    fileprivate var columns: Int {
        guard let first = unicodeScalars.first else { return 0 }
        switch first.value {
        case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f,
            0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1faff, 0x20000...0x3fffd:
            return 2
        default:
            return 1
        }
    }
}
