import Testing

@testable import stallwatch_demo

@Suite struct ChildProcessTests {
    @Test func theOutputOfAChildIsReturned() async throws {
        let child = try ChildProcess(["-c", "echo done"], executable: "/bin/sh")
        #expect(await child.finish(within: .seconds(30)).answer == "done\n")
    }

    @Test func aFailedChildHasAStatusAndItsOutput() async throws {
        let child = try ChildProcess(["-c", "echo half; exit 74"], executable: "/bin/sh")
        let ending = await child.finish(within: .seconds(30))
        #expect(ending.answer == nil)
        #expect(ending.description == "ended with status 74 and wrote 'half\n'")
    }

    @Test func aChildThatDoesNotEndIsKilled() async throws {
        let child = try ChildProcess(["-c", "exec sleep 60"], executable: "/bin/sh")
        #expect(await child.finish(within: .milliseconds(50)).description == "was ended by signal 9 and wrote ''")
    }
}
