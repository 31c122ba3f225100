import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

/// The page that a user with a symptom reads first.
@Suite struct SymptomsTests {
    /// The cells of each row: what is seen, what to run, what the report says.
    private static func rows() throws -> [[String]] {
        let page = Repository.root.appendingPathComponent("docs/Symptoms.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("| ") }
        return lines.dropFirst(2).map { $0.components(separatedBy: " | ") }
    }

    /// The texts in code style.
    private static func code(_ cell: String) -> [String] {
        cell.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
    }

    @Test func `each row has a command or a line that works, and a word of the reports`() throws {
        let rows = try Self.rows()
        #expect(rows.count == 19)
        for row in rows {
            try #require(row.count == 3, "\(row)")
            let codes = Self.code(row[1])
            #expect(!codes.isEmpty || row[1].hasPrefix("the same"), "\(row)")
            for code in codes where code.hasPrefix("stallwatch") {
                let words = code.split(separator: " ").dropFirst().map(String.init)
                #expect(throws: Never.self, "\(code)") {
                    try StallWatchCommand.parseAsRoot(Invocation.arguments(words))
                }
                if let option = words.firstIndex(of: "--cause") {
                    #expect(FilterOptions.causes.contains(words[option + 1]), "\(code)")
                }
                if let option = words.firstIndex(of: "--kind") {
                    #expect(FilterOptions.kinds.contains(words[option + 1]), "\(code)")
                }
            }
            let known = FilterOptions.causes + FilterOptions.kinds
            #expect(Self.code(row[2]).contains { known.contains($0) }, "\(row)")
        }
        for kind in FilterOptions.kinds {
            #expect(rows.contains { Self.code($0[2]).contains(kind) }, "no row has a report of the kind \(kind)")
        }
    }
}
