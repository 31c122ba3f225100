import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct RuntimeFrameTests {
    @Test(arguments: [
        ("thunk for @escaping @callee_guaranteed () -> ()", "$sIeg_IegyT_TR"), ("partial apply for run()", nil),
        ("static App.$main()", "$s3app3AppV5$mainyyFZ"), ("__CFRunLoopRun", "__CFRunLoopRun"),
        ("_dispatch_worker_thread", "_dispatch_worker_thread"), ("start_thread", "start_thread"),
    ])
    func knowsRuntimeFrames(function: String, symbol: String?) {
        let generated = StallReport.CompilerGenerated(function: function)
        #expect(RuntimeFrame.contains(function: function, generated: generated, symbol: symbol))
    }

    @Test(arguments: ["save()", "closure #1 in save()", "main", "specialized NoteStore.save(_:)", "dispatch_sync"])
    func ordinaryFunctionsAreNoRuntimeFrames(function: String) {
        #expect(!RuntimeFrame.contains(function: function, generated: nil, symbol: function))
    }
}
