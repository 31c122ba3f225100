import ArgumentParser
import Testing

@testable import StallWatchCLI

/// The settings of `stallwatch run`.
@Suite struct RunSettingsTests {
    private func settings(
        _ options: RunSettings.Options = .init(), _ variables: [RunSettings.Variable: String] = [:]
    ) throws -> RunSettings {
        try RunSettings(options) { variables[$0] }
    }

    @Test func `each setting has a default`() throws {
        let settings = try settings()
        #expect(settings.text == "250000000 7 0 0")
        #expect(settings.output == "stalls")
    }

    @Test func `each command has a short form of its output option`() throws {
        #expect(try RunCommand.parse(["-o", "x", "--", "true"]).output == "x")
        #expect(try TestCommand.parse(["-o", "x", "--", "true"]).output == "x")
    }

    @Test func `variables do the same as options`() throws {
        let variables: [RunSettings.Variable: String] = [
            .threshold: "1s", .output: "/x", .loop: "glib", .children: "1", .quiet: "1",
        ]
        let settings = try settings(.init(), variables)
        #expect(settings.text == "1000000000 4 1 1")
        #expect(settings.output == "/x")
    }

    @Test func `an option comes before its variable`() throws {
        let options = RunSettings.Options(
            threshold: DurationArgument(milliseconds: 5), output: "a", loop: .runLoop, children: true, quiet: true)
        let variables: [RunSettings.Variable: String] = [
            .threshold: "1s", .output: "b", .loop: "glib", .children: "0", .quiet: "0",
        ]
        let settings = try settings(options, variables)
        #expect(settings.text == "5000000 1 1 1")
        #expect(settings.output == "a")
    }

    @Test func `an empty variable counts as not set`() throws {
        #expect(try settings(.init(), [.threshold: "", .children: ""]) == settings())
    }

    @Test(
        arguments: [
            (.threshold, "soon", "STALLWATCH_THRESHOLD: 'soon' is not a duration."),
            (.threshold, "4.9ms", "The threshold is 4.9ms: give a value from 5ms to 24h."),
            (.loop, "epoll", "STALLWATCH_LOOP: 'epoll' is no loop: give auto, run-loop, main-queue or glib."),
            (.children, "yes", "STALLWATCH_CHILDREN: 'yes' is neither 1 nor 0."),
        ] as [(RunSettings.Variable, String, String)])
    func `a wrong value is one sentence`(variable: RunSettings.Variable, value: String, sentence: String) throws {
        let error = #expect(throws: ValidationError.self) { try settings(.init(), [variable: value]) }
        #expect(error?.message.hasPrefix(sentence) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [(LoopChoice.auto, 7), (.runLoop, 1), (.mainQueue, 2), (.glib, 4)] as [(LoopChoice, Int32)])
    func `each choice of loops has its bits`(choice: LoopChoice, bits: Int32) {
        #expect(choice.bits == bits)
    }
}
