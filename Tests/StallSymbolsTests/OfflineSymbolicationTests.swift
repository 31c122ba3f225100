import TestSupport
import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct OfflineSymbolicationTests {
    /// A symbolicator that finds the same functions at every address.
    private final class Found: Symbolicating {
        let locations: [CodeLocation]

        init(_ locations: [CodeLocation]) { self.locations = locations }

        func lookUp(_ offset: UInt64, in image: ImageIdentity, deadline: UInt64) -> ResolvedAddress {
            ResolvedAddress(locations: locations)
        }
    }

    private static let write = CodeLocation(
        symbol: "$s9VendorKit5writeyyF", file: "/src/notes/VendorKit/Write.swift", line: 7,
        declaration: CodeLocation.Declaration(file: "/src/notes/VendorKit/Write.swift", line: 6),
        directory: "/src/notes")
    private static let flush = CodeLocation(
        symbol: "$s9VendorKit5flushyyF", file: "/src/notes/VendorKit/Flush.swift", line: 3,
        declaration: CodeLocation.Declaration(file: "/src/notes/VendorKit/Flush.swift", line: 2),
        directory: "/src/notes", isInlined: true)

    private func report(buildID: String = "ab", _ change: (inout StallReport.Frame) -> Void = { _ in }) throws
        -> StallReport
    {
        var report = try StallReport.literal()
        report.images = [
            StallReport.Image(name: "notes", path: "/opt/notes/bin/notes", baseAddress: "0x1", isInApp: true)
        ]
        report.images[0].buildID = buildID
        report.frames = [StallReport.Frame(image: 0, offset: "0x10", isInApp: true, kind: .code)]
        change(&report.frames[0])
        report.stacks = [[0]]
        report.samples = Array(report.samples.prefix(1))
        (report.culprit, report.callout) = (nil, nil)
        report.fingerprint = Fingerprint(report).text
        return report
    }

    @Test func `two builds have one fingerprint as soon as their functions have names`() throws {
        let (first, second) = (try report(buildID: "ab"), try report(buildID: "cd"))
        #expect(first.fingerprint != second.fingerprint)
        let symbolication = OfflineSymbolication(Found([Self.write]))
        let (firstNamed, secondNamed) = (symbolication.symbolicate(first), symbolication.symbolicate(second))
        #expect(firstNamed.fingerprint == Fingerprint(firstNamed).text)
        #expect(firstNamed.fingerprint == secondNamed.fingerprint && firstNamed.fingerprint != first.fingerprint)
        #expect(symbolication.symbolicate(firstNamed) == firstNamed, "a second symbolication changes nothing")
    }

    @Test func `a report without a fingerprint gets one`() throws {
        var report = try report()
        report.fingerprint = nil
        let named = OfflineSymbolication(Found([CodeLocation()])).symbolicate(report)
        #expect(named.fingerprint == Fingerprint(named).text)
    }

    @Test func `a fingerprint of names that are not found again stays`() throws {
        var report = try report()
        report.fingerprint = "0123456789abcdef"
        let named = OfflineSymbolication(Found([CodeLocation()])).symbolicate(report)
        #expect(named.fingerprint == "0123456789abcdef")
    }

    @Test func `whose code a function is stays as the process has judged it`() throws {
        let symbolication = OfflineSymbolication(Found([Self.flush, Self.write]))
        let unnamed = symbolication.symbolicate(try report())
        #expect(unnamed.frames.map(\.isInApp) == [true, true])
        let excluded = try report { frame in
            (frame.function, frame.symbol) = ("write()", Self.write.symbol)
            (frame.isInApp, frame.isDependency) = (false, true)
        }
        let named = symbolication.symbolicate(excluded)
        #expect(named.frames.map(\.function) == ["flush()", "write()"] && named.frames.map(\.line) == [3, 7])
        #expect(named.frames.allSatisfy { !$0.isInApp && $0.isDependency == true })
        // The outermost of a dependency: the innermost is blamed only of the app's.
        #expect(unnamed.culprit?.function == "flush()" && named.culprit?.function == "write()")
        #expect(symbolication.symbolicate(named) == named, "a second symbolication changes nothing")
    }
}
