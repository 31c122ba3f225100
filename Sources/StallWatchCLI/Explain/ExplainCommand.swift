import ArgumentParser
import StallReports

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explain a cause: what it means, how to confirm it, and the usual fixes.",
        discussion: """
            The word is a cause or a kind, as reports and tables show it, or one of children and network. The pages are those of \
            docs/causes.

            Examples:
              stallwatch explain lock
              stallwatch explain saturated
            """
    )

    @Argument(help: ArgumentHelp("The cause or kind.", valueName: "word"), completion: .list(CausePage.words))
    var word: String

    func validate() throws {
        guard CausePage.text(word) == nil else { return }
        throw ValidationError("'\(word)' has no page. The words are: \(CausePage.words.joined(separator: ", ")).")
    }

    func run() throws {
        if let page = CausePage.text(word) { try StandardOutput.write(page) }
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
        "saturation": PackageResources.saturation_md, "sleep": PackageResources.sleep_md,
        "spinning": PackageResources.spinning_md, "starvation": PackageResources.starvation_md,
        "unknown": PackageResources.unknown_md,
    ]
    /// Words of reports whose page has another name.
    private static let others = [
        "continuation": "overdue", "cpuContention": "contention", "modeStarvation": "mode", "pinned": "pool",
        "saturated": "saturation", "syscall": "children", "throttled": "contention",
    ]

    static let words = (Array(pages.keys) + others.keys).sorted()

    static func text(_ word: String) -> [UInt8]? { pages[others[word] ?? word] }
}
