import Testing

@testable import StallReports
@testable import StallWatch

@Suite struct FingerprintTests {
    private func fingerprint(_ paths: [[String]], loop: StallReport.LoopKind = .runLoop) -> String {
        Fingerprint(loop: loop, paths: paths.map { $0.map { Fingerprint.Place(name: $0, isFunction: true) } }).text
    }

    /// The published test vectors of FNV-1a: stored fingerprints are kept for years, so the hash must never change.
    @Test(arguments: [
        ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
    ])
    func theHashIsFNV1a(text: String, hash: UInt64) {
        #expect(Fingerprint.hash(text.utf8) == hash)
    }

    /// A fixed value: a change would invalidate all stored fingerprints.
    @Test func aFingerprintIsTheSameInEveryVersion() {
        #expect(
            fingerprint([["save(_:)", "main"]])
                == hexadecimal(Fingerprint.hash("1\nrunLoop\nmain\nsave(_:)".utf8), width: 16))
        #expect(fingerprint([["save(_:)", "main"]]).count == 16)
    }

    @Test func pathAndLoopDistinguishStalls() {
        let base = fingerprint([["a()", "b()"]])
        #expect(base != fingerprint([["b()", "a()"]]))
        #expect(base != fingerprint([["a()"]]))
        #expect(base != fingerprint([["a()", "b()"]], loop: .dispatchQueue))
        #expect(fingerprint([["closure #1 in a()"]]) != fingerprint([["closure #2 in a()"]]))
    }

    @Test func theDepthOfARecursionDoesNotCount() {
        #expect(fingerprint([["f()", "f()", "f()", "a()"]]) == fingerprint([["f()", "a()"]]))
        #expect(fingerprint([["f()", "g()", "f()", "g()", "a()"]]) == fingerprint([["f()", "g()", "a()"]]))
    }

    @Test(arguments: [
        ("specialized save<A>(_:)", "save<A>(_:)"), ("specialized specialized f()", "f()"), ("merged f()", "f()"),
        ("partial apply for closure #1 in f()", "closure #1 in f()"), ("work.cold", "work"),
        ("work.constprop.0", "work"),
        ("work.llvm.1234", "work"), ("K.v.getter", "K.v.getter"), ("Store.part", "Store"),
        ("NoteStore.save(_:)", "NoteStore.save(_:)"),
        ("std::vector<int>::push_back(int const&)", "std::vector<int>::push_back(int const&)"),
    ])
    func compilerSuffixesAndPrefixesAreRemoved(name: String, expected: String) {
        #expect(Fingerprint.functionName(name) == expected)
    }

    @Test(arguments: [
        "thunk for @escaping @callee_guaranteed () -> ()", "protocol witness for P.f() in conformance S",
        "outlined copy of Any",
        "dispatch thunk of C.f()",
    ])
    func compilerMadeFramesDoNotCount(name: String) {
        #expect(Fingerprint.functionName(name) == nil)
    }

    @Test func theInnermostFramesOfABusyTurnDoNotCount() {
        let busy = [["a()", "render()"], ["b()", "render()"], ["c()", "render()"]]
        #expect(fingerprint(busy) == fingerprint([["render()"]]))
        #expect(fingerprint(busy) == fingerprint([busy[2], busy[0], busy[1]]))
        let mostlyInA = [["a()", "render()"], ["a()", "render()"], ["b()", "render()"]]
        #expect(fingerprint(mostlyInA) == fingerprint([["a()", "render()"]]))
        #expect(fingerprint([["a()"], ["b()"]]) == fingerprint([["a()"]]), "nothing in common: the first counts")
    }

    @Test func addressesDoNotCount() throws {
        var report = try #require(fixture())
        let before = Fingerprint(report)
        for index in report.images.indices { report.images[index].baseAddress = "0x7f0000000000" }
        for index in report.frames.indices { report.frames[index].offset = "0x\(index)" }
        #expect(Fingerprint(report) == before)
    }

    @Test func withoutNamesTheBuildIDCounts() throws {
        var report = try #require(fixture())
        for index in report.frames.indices { report.frames[index].function = nil }
        let stripped = Fingerprint(report)
        #expect(stripped != Fingerprint(try #require(fixture())))
        for index in report.images.indices { report.images[index].baseAddress = "0x7f0000000000" }
        #expect(Fingerprint(report) == stripped)
        report.images[0].buildID = "ff"
        #expect(Fingerprint(report) != stripped)
    }

    @Test func functionsOutsideTheCalloutDoNotCount() throws {
        var report = try #require(fixture())
        let inside = Fingerprint(report)
        let callout = StallReport.Frame(
            image: 0, offset: "0x1", function: nil, symbol: "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", isInApp: false,
            kind: .code
        )
        let outside = StallReport.Frame(
            image: 0, offset: "0x2", function: "runTheLoopSomehow()", symbol: nil, isInApp: true, kind: .code
        )
        report.stacks[0] += [report.frames.count, report.frames.count + 1]
        report.frames += [callout, outside]
        #expect(Fingerprint(report) == inside)
    }

    private func fixture() -> StallReport? {
        Reporter.Settings.fixture().builder().report(of: .fixture(function: 3))
    }
}
