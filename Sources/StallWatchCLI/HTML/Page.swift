/// The page as one file: its markup, its style, its scripts and its data.
///
/// It loads nothing else. The sources in `Page/` are compiled into the tool.
enum Page {
    /// The scripts, in the order in which they build on each other.
    private static var scripts: [[UInt8]] {
        [
            PackageResources.data_js,
            PackageResources.filter_js,
            PackageResources.address_js,
            PackageResources.merge_js,
            PackageResources.lists_js,
            PackageResources.timeline_js,
            PackageResources.flame_js,
            PackageResources.markdown_js,
            PackageResources.detail_js,
            PackageResources.controls_js,
            PackageResources.main_js,
        ]
    }

    /// The file's contents.
    static func html(_ data: [UInt8]) -> [UInt8] {
        let parts = [
            "%CSS%": PackageResources.page_css, "%DATA%": data, "%JS%": Array(scripts.joined()),
        ]
        var html: [UInt8] = []
        var text = String(decoding: PackageResources.page_html, as: UTF8.self)[...]
        while let percent = text.firstIndex(of: "%") {
            html += text[..<percent].utf8
            text = text[percent...]
            // Inserted text is not scanned again: a function may be named %JS%.
            if let (mark, contents) = parts.first(where: { text.hasPrefix($0.key) }) {
                html += contents
                text = text.dropFirst(mark.count)
            } else {
                html.append(UInt8(ascii: "%"))
                text = text.dropFirst()
            }
        }
        return html + text.utf8
    }
}
