import Glibc

/// What standard output can show.
struct Terminal: Sendable {
    /// Whether a person looks at it.
    var isTerminal = false
    /// How many columns a line has; `nil` where lines have no end.
    var width: Int?
    /// Whether colours are wanted.
    var hasColour = false

    /// Standard output.
    static let standardOutput = Terminal(descriptor: STDOUT_FILENO)

    init(isTerminal: Bool = false, width: Int? = nil, hasColour: Bool = false) {
        self.isTerminal = isTerminal
        self.width = width
        self.hasColour = hasColour
    }

    private init(descriptor: Int32) {
        guard isatty(descriptor) == 1 else {
            self.init()
            return
        }
        let type = getenv("TERM").map { String(cString: $0) } ?? "dumb"
        // https://no-color.org: present and not empty.
        let refusesColour = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        var size = winsize()
        // A terminal that does not know its size (0 columns) has at least 80.
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        self.init(
            isTerminal: true, width: isKnown ? Int(size.ws_col) : 80,
            hasColour: type != "dumb" && type != "" && !refusesColour
        )
    }

    /// How a text is set off from others (ECMA-48, SGR).
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

    /// The text in that style, where there are colours.
    func style(_ text: String, _ styles: Style...) -> String {
        guard hasColour, !styles.isEmpty, !text.isEmpty else { return text }
        return "\u{1b}[\(styles.map(\.rawValue).joined(separator: ";"))m\(text)\u{1b}[0m"
    }
}

extension String {
    /// The text without what a terminal would take for a command: reports may come from anywhere.
    var printable: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.map { $0.isControl ? "\u{fffd}" : $0 }))
    }

    /// How many columns it takes on a terminal.
    var columns: Int {
        utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.columns }
    }

    /// The text in `width` columns at most, with an ellipsis where something is left out.
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

/// To which side of a column a text is put.
enum Alignment {
    case left, right
}

extension Unicode.Scalar {
    /// Whether it is one of the controls of ISO 6429, or turns the direction of what follows.
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
