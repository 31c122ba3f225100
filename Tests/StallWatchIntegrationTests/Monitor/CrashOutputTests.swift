import Foundation
import TestSupport
import Testing

/// What the crash handler of the Swift runtime prints about a program with a monitor.
@Suite(.serialized) struct CrashOutputTests {
    /// Runs a program that crashes; returns its output without what differs from run to run: addresses, times, and the
    /// number of images.
    private func crash(_ place: String, threads: String) throws -> String {
        let result = try Command(
            program: Command.product("stallwatch-test-host"), arguments: ["crash", place],
            environment: [
                "SWIFT_BACKTRACE":
                    "enable=yes,color=no,interactive=no,symbolicate=fast,registers=none,threads=\(threads)"
            ]
        ).run()
        #expect(result.reason == .uncaughtSignal, "\(result.text)")
        return result.text
            .replacing(/0x[0-9a-f]+/, with: "ADDRESS")
            .replacing(/took [0-9.]+/, with: "took TIME")
            .replacing(/[0-9]+ omitted/, with: "SOME omitted")
    }

    @Test func `a crash looks as it does without a monitor`() throws {
        let bare = try crash("bare", threads: "crashed")
        #expect(bare.contains("crashed:"), "\(bare)")
        #expect(bare.contains("Crash.crash()"))
        #expect(try crash("monitored", threads: "crashed") == bare)
    }

    @Test(arguments: ["monitored", "sink"])
    func `a crash is shown on every thread, and none is missing`(place: String) throws {
        let output = try crash(place, threads: "preset")
        #expect(output.contains("crashed:"), "\(output)")
        #expect(output.contains("Crash.crash()"))
        #expect(!output.contains("failed to suspend"), "\(output)")
        #expect(output.contains("\"stallwatch-dog\":"), "\(output)")
    }
}
