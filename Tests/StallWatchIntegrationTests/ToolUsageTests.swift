import Foundation
import TestSupport
import Testing

/// What `tree`, `export` and `html` say of what is wrong with a command line, whole.
@Suite struct ToolUsageTests {
    /// The end of what is said of every wrong command line.
    private static func usage(_ command: String, _ form: String = "[<options>] <path> ...") -> String {
        "Usage: stallwatch \(command) \(form)\n  See 'stallwatch \(command) --help' for more information.\n"
    }

    private static let wrong: [(line: String, text: String, status: Int32)] = [
        (
            "tree x --minimum 101",
            "Error: The value '101.0' of --minimum is no share: give 0 to 100 percent.\n" + usage("tree"), 64
        ),
        (
            "tree x --minimum much",
            "Error: The value 'much' is invalid for '--minimum <percent>'\n"
                + "Help:  --minimum <percent>  Leave out what has less than this share of all stalled time.\n"
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
                + "Help:  --format <format>  collapsed, speedscope, pprof, firefox or perf.\n"
                + usage("export", "[<options>] <path> ... --format <format>"), 64
        ),
        (
            "export x --format svg",
            "Error: The value 'svg' is invalid for '--format <format>'. Please provide one of 'collapsed', "
                + "'speedscope', 'pprof', 'firefox' or 'perf'.\n"
                + "Help:  --format <format>  collapsed, speedscope, pprof, firefox or perf.\n"
                + usage("export", "[<options>] <path> ... --format <format>"), 64
        ),
        (
            "html x",
            "Error: Missing expected argument '--output <file>'\n"
                + "Help:  --output <file>  The file to write; - for standard output.\n"
                + usage("html", "[<options>] <path> ... --output <file>"), 64
        ),
        ("html x -o ''", "Error: The output's path is empty: name a file.\n", 73),
        ("html x -o /dev/full", "Error: /dev/full is not a regular file: name another one for the output.\n", 73),
        ("tree /none", "Error: /none cannot be read: No such file or directory\n", 66),
    ]

    @Test(arguments: wrong) func wrongCommandLines(line: String, text: String, status: Int32) throws {
        let output = try Tool.shell("\"$TOOL\" \(line)")
        #expect(output.text == text)
        #expect(output.status == status)
    }
}
