import Foundation
import TestSupport
import Testing

/// The recipes of `docs/jq.md`, run on real reports.
@Suite struct JQRecipeTests {
    private struct Culprit: Decodable {
        let culprit: String?
        let milliseconds: Double
    }

    /// The page's commands.
    private static func recipes() throws -> [String] {
        let page = try String(contentsOf: Repository.root.appendingPathComponent("docs/jq.md"), encoding: .utf8)
        return page.components(separatedBy: "```sh\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
    }

    @Test func everyRecipePrintsAnAnswer() throws {
        let directory = try TemporaryDirectory()
        try Tool.stallDemo(into: directory.path("stalls"))
        let recipes = try Self.recipes()
        #expect(recipes.count == 8)
        for recipe in recipes {
            let output = try Tool.shell(
                "set -o pipefail; cd \(directory.path); PATH=$(dirname \"$TOOL\"):$PATH\n\(recipe)")
            #expect(output.status == 0, "\(recipe)\(output.text)")
            #expect(!output.text.isEmpty, "\(recipe)")
        }
        let sum = try #require(recipes.first { $0.contains("sort_by(-.milliseconds)") })
        let culprits = try Tool.decode([Culprit].self, Tool.shell("cd \(directory.path); \(sum)").text)
        #expect(culprits.contains { $0.culprit == Tool.spinning })
        let top = try Tool.decode(Tool.Top.self, Tool.run(["top", directory.path("stalls"), "--json"]))
        #expect(abs(culprits.reduce(0) { $0 + $1.milliseconds } - top.totalMilliseconds) < 0.01)
    }
}
