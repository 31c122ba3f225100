import Foundation
import StallReports
import TestSupport
import Testing

@testable import StallSymbols

/// Compares names, lines and inlined functions with the toolchain's llvm-symbolizer.
///
/// Three differences are expected, and no others. For code without debug information, llvm-symbolizer guesses a file
/// (and line 0) from the symbol table's STT_FILE entries; we give no file. It treats "<compiler-generated>" as a file;
/// we do not. For code without a line it gives line 0; we give the previous line in the same function, if there is one.
/// With --skip-line-zero it gives the previous line, too, but possibly that of another function.
@Suite("Symbolication against llvm-symbolizer", .needsToolchain)
struct SymbolicationOracleTests {
    @Test("2,000 call sites of a 20 MB release executable", .timeLimit(.minutes(20)))
    func release() throws {
        let path = try SymbolicationFixture.release.get()
        #expect(try ELFFile(path: path).size() >= 20_000_000)
        try compare(path, count: 2000, minimumInlined: 500)
    }

    @Test("500 call sites of a debug executable", .timeLimit(.minutes(20)))
    func debug() throws {
        try compare(SymbolicationFixture.debug.get(), count: 500, minimumInlined: 0)
    }

    @Test("80 call sites of an executable of C, C++ and Swift", .timeLimit(.minutes(20)))
    func mixed() throws {
        try compare(SymbolicationFixture.mixed.get(), count: 80, minimumInlined: 10)
    }

    @Test(
        "60 call sites of C++, in every version of DWARF", .timeLimit(.minutes(20)),
        arguments: [["-gdwarf-2"], ["-gdwarf-3"], ["-gdwarf-4"], ["-gdwarf-5"], ["-gdwarf-5", "-gdwarf64"]]
    )
    func format(options: [String]) throws {
        try compare(SymbolicationFixture.cxx(options), count: 60, minimumInlined: 20)
    }

    private struct Place: Hashable {
        var function: String
        var file: String
        var line: Int
        var column: Int
    }

    private func compare(_ path: String, count: Int, minimumInlined: Int) throws {
        var generator = SeededGenerator(seed: 2026)
        let sites = try CallSites.all(in: path).shuffled(using: &generator)
        let symbolicator = Symbolicator(.lines)
        let own = try ELFFile(path: path)
        let image = ImageIdentity(path: path, buildID: try own.buildID(), contentHash: own.contentHash())
        var ours: [UInt64: [CodeLocation]] = [:]
        var without: [UInt64] = []
        for site in sites where ours.count < count {
            let answer = symbolicator.lookUp(site, in: image, deadline: .max)
            // Compare a tenth as many sites without debug information: both must give no line.
            if answer.reason == nil {
                ours[site] = answer.locations
            } else if without.count < count / 10 {
                without.append(site)
            }
        }
        #expect(symbolicator.reason(for: image) == nil)
        #expect(ours.count == count)
        #expect(ours.values.count { $0.count > 1 } >= minimumInlined)
        let theirs = try oracle(path, Array(ours.keys) + without)
        let stepping = ours.keys.filter { theirs[$0]?.first?.line == 0 && ours[$0]?.first?.line != nil }
        #expect(!stepping.isEmpty, "no site without a line")
        let stepped = try oracle(path, stepping, ["--skip-line-zero"])
        for (site, locations) in ours {
            #expect(locations.map(place) == stepped[site] ?? theirs[site], "at \(String(site, radix: 16))")
        }
        for site in without { #expect(theirs[site]?.map(\.line) == [0], "at \(String(site, radix: 16))") }
    }

    private func place(_ location: CodeLocation) -> Place {
        Place(
            function: location.symbol ?? "", file: location.file ?? "", line: location.line ?? 0,
            column: location.column ?? 0
        )
    }

    private struct Answer: Decodable {
        struct Symbol: Decodable {
            var FunctionName: String
            var FileName: String
            var Line: Int
            var Column: Int
        }
        var Address: String
        var Symbol: [Symbol]
    }

    private func oracle(_ path: String, _ sites: [UInt64], _ options: [String] = []) throws -> [UInt64: [Place]] {
        let output = try SymbolicationToolchain.run(
            "llvm-symbolizer", ["--output-style=JSON", "--no-demangle", "--inlines", "--obj=\(path)"] + options,
            input: sites.map { "0x" + String($0, radix: 16) }.joined(separator: "\n") + "\n"
        )
        var answers: [UInt64: [Place]] = [:]
        for line in output.split(separator: "\n") {
            let answer = try JSONDecoder().decode(Answer.self, from: Data(line.utf8))
            let site = try #require(UInt64(answer.Address.dropFirst(2), radix: 16))
            answers[site] = answer.Symbol.map { symbol in
                let isGenerated = symbol.FileName.hasSuffix("<compiler-generated>")
                return Place(
                    function: symbol.FunctionName, file: isGenerated ? "" : symbol.FileName,
                    line: isGenerated ? 0 : symbol.Line, column: isGenerated || symbol.Line == 0 ? 0 : symbol.Column
                )
            }
        }
        return answers
    }
}
