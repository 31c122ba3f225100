import StallReports
import Testing

@testable import StallWatchTesting

@Suite struct WatchedFunctionTests {
    private let file = "/app/Tests/FileTests.swift"

    private func frame(_ function: String?, file: String? = "/app/Tests/FileTests.swift") -> StallReport.Frame {
        StallReport.Frame(offset: "0x0", function: function, file: file, isInApp: true, kind: .code)
    }

    @Test(arguments: [
        ("AppTests.FileTests/reads()/FileTests.swift:3:6", "reads()", "FileTests.reads()"),
        ("AppTests.Outer/Inner/reads(_:)/FileTests.swift:3:6", "reads(_:)", "Outer.Inner.reads(_:)"),
        ("AppTests.reads()/FileTests.swift:3:6", "reads()", "reads()"),
        ("AppTests.FileTests/`a file`()/FileTests.swift:3:6", "`a file`()", "FileTests.a file()"),
        ("a form of another version", "reads()", "reads()"),
    ])
    func `a test's id names the function`(id: String, function: String, expected: String) {
        #expect(WatchedFunction(id: id, function: function, file: file).name == expected)
    }

    @Test func `the id of this test has the known form`() throws {
        let test = try #require(Test.current)
        #expect(WatchedFunction(test).name == "WatchedFunctionTests.the id of this test has the known form()")
    }

    @Test func `the function, its closures and functions in it are found`() {
        let function = WatchedFunction(name: "FileTests.reads()", file: file)
        #expect(function.contains(frame("FileTests.reads()")))
        #expect(function.contains(frame("closure #1 in FileTests.reads()")))
        #expect(function.contains(frame("helper #1 () in FileTests.reads()")))
        #expect(function.contains(frame("static Outer.FileTests.reads()")))
        #expect(function.contains(frame("closure #1 in FileTests.reads()", file: nil)))
    }

    @Test func `another function, suite or file is not`() {
        let function = WatchedFunction(name: "FileTests.reads()", file: file)
        #expect(!function.contains(frame("FileTests.writes()")))
        #expect(!function.contains(frame("OtherFileTests.reads()")))
        #expect(!function.contains(frame("FileTests.reads()", file: "/app/Tests/Other.swift")))
        #expect(!function.contains(frame(nil)))
    }
}
