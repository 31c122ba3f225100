import TestSupport
import Testing

/// What `stallwatch test` leaves in the environment of a test process, which a program is by its name.
@Suite struct PreloadEnvironmentTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func `the libraries that a script preloads stay, and no other`() throws {
        let script = """
            cp /bin/sh x.xctest
            LD_PRELOAD="libm.so.6:$LD_PRELOAD" ./x.xctest -c 'echo "$LD_PRELOAD"'
            LD_PRELOAD="libm.so.6 $LD_PRELOAD libdl.so.2" ./x.xctest -c 'echo "$LD_PRELOAD"'
            """
        let output = try Command(
            program: try Command.product("stallwatch"), arguments: ["test", "--", "sh", "-c", script],
            environment: ["LD_PRELOAD": nil], directory: directory.path
        ).run()
        #expect(output.output == "libm.so.6\nlibm.so.6:libdl.so.2\n", "\(output.text)")
    }
}
