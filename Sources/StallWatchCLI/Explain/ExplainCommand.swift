import ArgumentParser
import StallReports
import TextOutput

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain a cause: what it means, how to confirm it, and the usual fixes.",
        discussion: """
            The word is a cause or a kind, as reports and tables show it, or one of children, network and \
            signalHandler; without one the command lists them. The pages are those of docs/causes.

            Examples:
              stallwatch explain
              stallwatch explain lock
              stallwatch explain saturated
            """
    )

    @Argument(help: ArgumentHelp("The cause or kind.", valueName: "word"), completion: .list(CausePage.words))
    var word: String?

    func validate() throws {
        guard let word, CausePage.text(word) == nil else { return }
        throw ValidationError("'\(word)' has no page. The words are: \(CausePage.words.joined(separator: ", ")).")
    }

    func run() throws {
        let width = Terminal.standardOutput.width
        if let page = word.flatMap(CausePage.text) {
            try StandardOutput.writeLast(CausePage.wrapped(String(decoding: page, as: UTF8.self), to: width))
        } else {
            try StandardOutput.writeLast(CausePage.list(width))
        }
    }
}

/// The pages of docs/causes, which are compiled into the tool.
enum CausePage {
    private static let pages: [String: [UInt8]] = [
        "children": PackageResources.children_md, "contention": PackageResources.contention_md,
        "cpu": PackageResources.cpu_md, "deadlock": PackageResources.deadlock_md, "io": PackageResources.io_md,
        "lock": PackageResources.lock_md, "mode": PackageResources.mode_md, "network": PackageResources.network_md,
        "notRun": PackageResources.notRun_md, "overdue": PackageResources.overdue_md,
        "paging": PackageResources.paging_md, "pool": PackageResources.pool_md,
        "saturation": PackageResources.saturation_md, "signalHandler": PackageResources.signalHandler_md,
        "sleep": PackageResources.sleep_md, "spinning": PackageResources.spinning_md,
        "starvation": PackageResources.starvation_md, "unknown": PackageResources.unknown_md,
    ]
    /// Words of reports whose page has another name.
    private static let others = [
        "continuation": "overdue", "cpuContention": "contention", "modeStarvation": "mode", "pinned": "pool",
        "saturated": "saturation", "syscall": "children", "throttled": "contention",
    ]

    static let words = (Array(pages.keys) + others.keys).sorted()

    /// The page of a word in upper or lower case; `nil` if it has none.
    static func text(_ word: String) -> [UInt8]? {
        words.first { $0.lowercased() == word.lowercased() }.flatMap { pages[others[$0] ?? $0] }
    }

    /// Each word with the title of its page.
    static func list(_ width: Int?) -> String {
        words.map { word in
            let title = text(word).map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) } ?? ""
            let line = word.padded(to: 16) + String(title.drop { "# ".contains($0) })
            return line.wrapped(to: width, indentation: String(repeating: " ", count: 16)) + "\n"
        }.joined()
    }

    /// The page with its paragraphs and list items as wide as the reader's lines; code and tables stay as they are.
    static func wrapped(_ page: String, to width: Int?) -> String {
        guard let width else { return page }
        // Without an indentation, a part stays as it is.
        var parts: [(text: String, indentation: String?)] = []
        var isCode = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            let isFence = line.hasPrefix("```")
            if isFence { isCode.toggle() }
            let isFixed = isCode || isFence || line.isEmpty || line.hasPrefix("#") || line.hasPrefix("|")
            let marker = line.prefixMatch(of: #/- |[0-9]+\. /#).map { String($0.output) } ?? ""
            if !isFixed, marker.isEmpty, let last = parts.last, last.indentation != nil {
                parts[parts.count - 1].text += " " + String(line.drop { $0 == " " })
            } else {
                parts.append((String(line), isFixed ? nil : String(repeating: " ", count: marker.count)))
            }
        }
        return parts.map { part in
            part.indentation.map { part.text.wrapped(to: width, indentation: $0) } ?? part.text
        }.joined(separator: "\n")
    }
}
