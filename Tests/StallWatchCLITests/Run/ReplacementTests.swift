import Testing

@testable import StallWatchCLI

/// The environment of a program, which stays as it is but for the variables of the tool.
@Suite struct ProcessEnvironmentTests {
    private static func bytes(_ entries: [String]) -> [[UInt8]] { entries.map { Array($0.utf8) } }

    @Test func `a variable is replaced in its place`() {
        var environment = ProcessEnvironment(Self.bytes(["A=1", "LD_PRELOAD=/x", "B=2"]))
        environment.set("LD_PRELOAD", "/y:/x")
        environment.set("C", "3")
        #expect(environment.entries == Self.bytes(["A=1", "LD_PRELOAD=/y:/x", "B=2", "C=3"]))
    }

    @Test func `only the variable of that name is removed`() {
        var environment = ProcessEnvironment(Self.bytes(["STALLWATCH_LOOP=glib", "STALLWATCH_LOOPS=1", "LOOP"]))
        environment.remove("STALLWATCH_LOOP")
        #expect(environment.entries == Self.bytes(["STALLWATCH_LOOPS=1", "LOOP"]))
    }

    @Test func `bytes that are not UTF-8 stay`() {
        let entry = Array("A=".utf8) + [0xff, 0xfe]
        var environment = ProcessEnvironment([entry])
        environment.set("B", "1")
        #expect(environment.entries.first == entry)
    }
}
