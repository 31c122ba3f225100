import StallReports
import TextOutput

/// A page with a flame graph for each thread of a profile.
///
/// It is one file that loads nothing else. A frame is an element, so the page is readable without its script, which only
/// zooms.
enum ProfilePage {
    private static let rowHeight = 19
    /// The least share of a thread's time that is shown.
    private static let minimumShare = 0.001

    static func html(_ trees: ProfileTrees) -> String {
        let process = trees.profile.threads.first?.report.process
        let title = "\(process?.name ?? "") (\(process?.pid ?? 0))"
        let duration = "\(trees.profile.durationMilliseconds.duration), \(trees.profile.passes) samples"
        var html = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="\(Page.policy)"><link rel="icon" href="data:,">
            <title>Profile of \(title.escapedForHTML)</title>
            <style>
            body { font: 14px system-ui, sans-serif; margin: 1.5rem; color: #1b1f27; background: #fff; }
            .flame { position: relative; margin: .5rem 0 2rem; overflow: hidden; }
            .flame div { position: absolute; height: \(rowHeight - 1)px; overflow: hidden; white-space: nowrap; cursor: pointer;
              font: 12px/\(rowHeight - 1)px ui-monospace, monospace; padding-left: 3px; box-sizing: border-box; border-radius: 2px; }
            .running { background: #fdba74; } .blocked { background: #93c5fd; } .idle { background: #e5e7eb; }
            .other { filter: saturate(.45) brightness(1.06); }
            @media (prefers-color-scheme: dark) {
              body { color: #f2f4f7; background: #14171c; } .flame div { color: #1b1f27; }
            }
            </style></head><body>
            <h1>\(title.escapedForHTML)</h1>
            <p>\(duration.escapedForHTML). Orange: running. Blue: blocked in a turn. Grey: idle between turns. Pale: not the app's own \
            code. Click a frame to zoom, and the lowest row to zoom out.</p>

            """
        for (thread, tree) in zip(trees.profile.threads, trees.trees) {
            html += "<h2>\(ProfileTrees.title(thread.report).escapedForHTML)</h2>\n"
            html += "<p>\(ProfileTrees.times(thread).escapedForHTML)</p>\n" + flame(tree)
        }
        for note in trees.notes { html += "<p>\(note.escapedForHTML)</p>\n" }
        return html + "<script>\n\(script)</script></body></html>\n"
    }

    /// A node that is not yet written, with the microseconds before it, and its color class, which the outermost decides.
    private typealias Waiting = (node: Int, begin: Int, depth: Int, state: String)

    private static func flame(_ tree: CallTree) -> String {
        let all = Double(max(tree.microseconds, 1))
        var frames = ""
        var deepest = 0
        var waiting = placed(tree.roots, of: tree, from: 0, depth: 0, state: nil)
        while let next = waiting.popLast() {
            let node = tree.nodes[next.node]
            guard Double(node.total) / all >= minimumShare else { continue }
            deepest = max(deepest, next.depth)
            let function = tree.table.functions[node.function]
            let share = Double(node.total) / all * 100
            let place = function.file.map { sourcePlace($0, node.line) } ?? function.image
            let note =
                "\(function.name)\n\((Double(node.total) / 1_000).duration), \(share.fixed(1)) %"
                + (place.map { "\n\($0)" } ?? "")
            frames += """
                <div class="\(next.state)\(function.isInApp || next.depth == 0 ? "" : " other")" \
                style="left:\((Double(next.begin) / all * 100).fixed(4))%;width:\(share.fixed(4))%;\
                bottom:\(next.depth * rowHeight)px" title="\(note.escapedForHTML)">\(function.name.escapedForHTML)</div>

                """
            waiting += placed(node.children, of: tree, from: next.begin, depth: next.depth + 1, state: next.state)
        }
        return "<div class=\"flame\" style=\"height:\((deepest + 1) * rowHeight)px\">\n\(frames)</div>\n"
    }

    private static func placed(
        _ nodes: [Int], of tree: CallTree, from begin: Int, depth: Int, state: String?
    ) -> [Waiting] {
        var begin = begin
        return nodes.map { node in
            defer { begin += tree.nodes[node].total }
            let name = tree.table.functions[tree.nodes[node].function].name
            let known = ["running", "blocked", "idle"].first { name == "[\($0)]" }
            return (node, begin, depth, state ?? known ?? "running")
        }
    }

    private static let script = """
        "use strict";
        for (const flame of document.querySelectorAll(".flame")) {
          const frames = [...flame.children].map((element) => ({
            element, left: parseFloat(element.style.left), width: parseFloat(element.style.width),
            bottom: parseFloat(element.style.bottom),
          }));
          const zoom = (left, width, bottom) => {
            for (const frame of frames) {
              const isCaller = frame.bottom < bottom && frame.left <= left + 1e-3
                && frame.left + frame.width >= left + width - 1e-3;
              const isInside = frame.left + frame.width > left + 1e-3 && frame.left < left + width - 1e-3;
              frame.element.style.display = isInside && (frame.bottom >= bottom || isCaller) ? "" : "none";
              frame.element.style.left = isCaller ? "0" : ((frame.left - left) / width) * 100 + "%";
              frame.element.style.width = isCaller ? "100%" : (frame.width / width) * 100 + "%";
            }
          };
          for (const frame of frames) {
            frame.element.onclick = () => (frame.bottom === 0 ? zoom(0, 100, 0) : zoom(frame.left, frame.width, frame.bottom));
          }
        }

        """
}
