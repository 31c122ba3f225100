import Testing

@testable import StallWatchCLI

@Suite struct CollapsedStacksTests {
    @Test func aLineForEachStack() throws {
        let text = String(decoding: CollapsedStacks.data(try .fixture()), as: UTF8.self)
        #expect(
            text == """
                app main;main;parse 500000
                app main;main;save;copy 300250
                app main;main;save;wait 500000
                app other loop;[no stack] 500

                """
        )
    }

    @Test func namesCannotBreakTheFormat() throws {
        var profile = StallProfile()
        profile.add(try StackFixture.report(300, loop: "a;b", [.init(at: 250, stack: ["f;g\nh"])]))
        #expect(String(decoding: CollapsedStacks.data(profile), as: UTF8.self) == "app a:b;f:g h 300000\n")
    }

    @Test func `a name has no control and no command`() throws {
        var profile = StallProfile()
        profile.add(try StackFixture.report(300, loop: "a\\u001b[2J", [.init(at: 250, stack: ["##[error]x\u{9b}"])]))
        #expect(
            String(decoding: CollapsedStacks.data(profile), as: UTF8.self)
                == "app a\u{fffd}[2J;## [error]x\u{fffd} 300000\n")
    }
}
