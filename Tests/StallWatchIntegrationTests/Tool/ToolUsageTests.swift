import Foundation
import TestSupport
import Testing

/// The complete messages of `tree`, `export` and `html` for wrong command lines.
@Suite struct ToolUsageTests {
    /// The end of every message.
    private static func usage(_ command: String, _ form: String = "[<options>] <path> ...") -> String {
        "Usage: stallwatch \(command) \(form)\n  See 'stallwatch \(command) --help' for more information.\n"
    }

    private static let wrong: [(line: String, text: String, status: Int32)] = [
        (
            "tree x --minimum 101",
            "Error: --minimum is 101.0, but has to be between 0 and 100 percent.\n" + usage("tree"), 64
        ),
        (
            "tree x --minimum much",
            "Error: The value 'much' is invalid for '--minimum <percent>'\n"
                + "Help:  --minimum <percent>  Leave out functions with less than this share of all stalled time.\n"
                + usage("tree"), 64
        ),
        (
            "tree x --top-down --bottom-up",
            "Error: Value to be set with flag '--bottom-up' had already been set with flag '--top-down'\n"
                + usage("tree"), 64
        ),
        (
            "export x",
            "Error: Missing expected argument '--format <format>'\n"
                + "Help:  --format <format>  collapsed, speedscope, pprof, firefox, perf, perfetto or otlp-profiles.\n"
                + usage("export", "[<options>] <path> ... --format <format>"), 64
        ),
        (
            "export x --format svg",
            "Error: The value 'svg' is invalid for '--format <format>'. Please provide one of the following:\n"
                + "  - collapsed\n  - speedscope\n  - pprof\n  - firefox\n  - perf\n  - perfetto\n  - otlp-profiles\n"
                + "Help:  --format <format>  collapsed, speedscope, pprof, firefox, perf, perfetto or otlp-profiles.\n"
                + usage("export", "[<options>] <path> ... --format <format>"), 64
        ),
        (
            "html x",
            "Error: Missing expected argument '--output <file>'\n"
                + "Help:  --output <file>  The file to write, or - for standard output.\n"
                + usage("html", "[<options>] <path> ... --output <file>"), 64
        ),
        ("html x -o ''", "Error: The output path is empty. Name a file.\n", 73),
        ("html x -o /dev/full", "Error: /dev/full is not a regular file. Name another file for the output.\n", 73),
        ("tree /none", "Error: /none cannot be read: No such file or directory\n", 66),
    ]

    @Test(arguments: wrong) func wrongCommandLinesAreExplained(line: String, text: String, status: Int32) throws {
        let output = try Tool.shell("\"$TOOL\" \(line)")
        #expect(output.text == text)
        #expect(output.status == status)
    }
}
