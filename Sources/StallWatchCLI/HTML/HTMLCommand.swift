import ArgumentParser

struct HTMLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "html",
        abstract: "Write a page with the timeline, the groups, a flame graph and every stall.",
        discussion: """
            The page is one file that loads nothing else: it can be mailed, attached to a ticket and opened years later. It contains \
            the reports' data, including names of functions and files, and the source lines around the blamed places where the source \
            files are found below the working directory or --source-root. In the page, ? shows the keys.

            The page of two directories or NDJSON files, the older one first, is about their difference: what became worse is red, \
            what became better is blue. Times count per hour of monitored time, as in `stallwatch diff`. With --no-compare the two \
            are one set of reports, as three are.

            Examples:
              stallwatch html
              stallwatch html last-week this-week -o weeks.html
              stallwatch html stalls --since 24h --metadata version=1.4.2 -o today.html
              stallwatch html stalls --link 'vscode://file{file}:{line}' -o stalls.html
            """
    )

    @OptionGroup var selection: ReportSelection

    @Option(name: .shortAndLong, help: ArgumentHelp("The file to write, or - for standard output.", valueName: "file"))
    var output = "stalls.html"

    @Flag(
        inversion: .prefixedNo,
        help: "Compare two sets of reports: the older path, then the newer one. (default: for two sets)"
    )
    var compare: Bool?

    @OptionGroup var sourceOptions: SourceOptions

    @Option(
        help: ArgumentHelp(
            "What places in the source link to, with {line} and {path} (from the package's root) or {file} (the whole path).",
            valueName: "address"))
    var link = PageData.standardLink

    /// Whether the page is a comparison; by itself it is one of two sets, and not of two report files.
    private var isComparison: Bool {
        compare ?? (selection.paths.count == 2 && !selection.paths.contains { $0 == "-" || $0.hasSuffix(".json") })
    }

    func validate() throws {
        guard link.contains("{file}") || link.contains("{path}") else {
            throw ValidationError("--link needs {path} or {file}, as in \(PageData.standardLink).")
        }
        let words = SelectedWords(selection.words)
        if isComparison, selection.paths.count == 2, !words.digits.isEmpty || !words.rows.isEmpty {
            throw ValidationError("A comparison takes no digits and no rows: use --fingerprint, or --no-compare.")
        }
        guard compare == true else { return }
        guard selection.paths.count == 2 else {
            throw ValidationError("--compare takes two paths: the older reports, then the newer ones.")
        }
        // Each side is read twice: for its time and for its stacks.
        if selection.paths.contains("-") { throw ValidationError("--compare cannot read standard input: name files.") }
    }

    func run() throws {
        let destination = try Destination(output, isBinary: false)
        var page = try isComparison ? compared() : single()
        guard page.count > 0 else { throw CommandFailure(.nothing, "No report matches.") }
        try destination.write(
            Page.html(page.json(), list: page.list), of: counted(reports: page.count, ofStalls: page.stallCount))
    }

    private func single() throws -> PageData {
        var data = PageData(sources: sourceOptions.files, link: link)
        let reports = try selection.read()
        data.history = VersionHistory(reports.filter)
        try reports.forEach(.whole) { report, _ in data.add(report) }
        data.time = MonitoredTime(statistics: reports.statistics, reports: data.history.hours)
        return data
    }

    private func compared() throws -> PageData {
        let values = FilterValues(selection.filters.filter)
        let sets = try selection.paths.map { path in
            try ReportSet(path, filters: selection.filters, strict: selection.strict, hours: nil, values)
        }
        try values.check()
        let sides = zip(selection.paths, sets).map { PageData.Side(name: $0, hours: $1.time.hours) }
        var data = PageData(comparing: sides, sources: sourceOptions.files, link: link)
        let comparison = Comparison(base: sets[0], new: sets[1], tolerance: DiffCommand.Tolerance.standard.share)
        var words: [String: String] = [:]
        for change in comparison.changes where change.kind != .same {
            if let fingerprint = change.group.fingerprint { words[fingerprint] = change.word }
        }
        data.changes = words
        for (side, path) in selection.paths.enumerated() {
            let reports = try selection.filters.read([path], strict: selection.strict)
            try reports.forEach(.whole, side: values) { report, _ in data.add(report, side: side) }
        }
        return data
    }
}

/// The page as one file that loads nothing else; the sources in `Page/` are compiled into the tool.
enum Page {
    /// What a page of the tool may load and run: only what is in it.
    static let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

    /// The scripts, in the order in which they build on each other.
    private static let scripts = [
        PackageResources.data_js,
        PackageResources.filter_js,
        PackageResources.address_js,
        PackageResources.merge_js,
        PackageResources.lists_js,
        PackageResources.timeline_js,
        PackageResources.flame_js,
        PackageResources.markdown_js,
        PackageResources.detail_js,
        PackageResources.group_js,
        PackageResources.controls_js,
        PackageResources.main_js,
    ]

    /// `list` is what a browser without scripts shows, as items of a list.
    static func html(_ data: [UInt8], list: String = "") -> [UInt8] {
        let parts = [
            "POLICY": Array(policy.utf8), "CSS": PackageResources.page_css, "DATA": data, "JS": Array(scripts.joined()),
            "LIST": Array(list.utf8),
        ]
        // Text and marks in turn; the page has no other "%". Inserted text is not scanned: a function may be named %JS%.
        return String(decoding: PackageResources.page_html, as: UTF8.self)
            .split(separator: "%", omittingEmptySubsequences: false)
            .flatMap { parts[String($0)] ?? Array($0.utf8) }
    }
}
