import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct InAppRuleTests {
    private func isInApp(_ path: String, isExecutable: Bool = false, among others: [String] = []) -> Bool {
        InAppRule(InAppSettings(), imagePaths: [path] + others).isInApp(imageAt: path, isExecutable: isExecutable)
    }

    @Test(arguments: ["/opt/notes/bin/notes", "/usr/lib/notes/notes", "/usr/bin/notes", "notes"])
    func theExecutableIsInAppWhereverItLies(path: String) {
        #expect(isInApp(path, isExecutable: true))
    }

    @Test(arguments: [
        "/opt/notes/lib/libNotes.so", "/srv/libs/libNotes.so", "/usr/library/libNotes.so", "/lib6/libNotes.so",
        "/usr/libexec/notes/libNotes.so",
    ])
    func aLibraryOfTheAppsOwnIsInApp(path: String) {
        #expect(isInApp(path))
    }

    @Test(arguments: [
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/swift/linux/libFoundation.so", "/usr/local/lib/libz.so",
    ])
    func aLibraryOfTheSystemIsNot(path: String) {
        #expect(!isInApp(path))
    }

    @Test(arguments: ["linux-vdso.so.1", "[vdso]", ""])
    func whatHasNoFileIsNot(path: String) {
        #expect(!isInApp(path))
    }

    @Test func theToolchainsLibrariesAreNotWhereverItIsInstalled() {
        let core = "/opt/swift/usr/lib/swift/linux/libswiftCore.so"
        #expect(isInApp("/opt/swift/usr/lib/swift/linux/libFoundation.so"))
        #expect(!isInApp("/opt/swift/usr/lib/swift/linux/libFoundation.so", among: [core]))
        #expect(isInApp("/opt/swift/usr/lib/swift/linux-app/libNotes.so", among: [core]))
        #expect(isInApp("/opt/notes/lib/libNotes.so", among: [core]))
    }
}

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

@Suite struct CalloutTests {
    @Test(arguments: [
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__", StallReport.Callout.timer),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__", .source0),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__", .source1),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", .performedBlock),
        ("__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__", .observer),
        ("__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__", .mainQueue),
    ])
    func aCalloutIsToldByTheFunctionThatMakesIt(symbol: String, callout: StallReport.Callout) {
        #expect(StallReport.Callout(symbols: ["$s5notes4workyyF", nil, symbol, "__CFRunLoopRun"]) == callout)
    }

    @Test func theInnermostCalloutIsTheTurns() {
        let symbols = [
            "work", "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", "__CFRunLoopRun", "nested",
            "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__",
        ]
        #expect(StallReport.Callout(symbols: symbols) == .performedBlock)
    }

    @Test func aStackWithoutACalloutHasNone() {
        #expect(StallReport.Callout(symbols: ["work", nil, "main"]) == nil)
        #expect(StallReport.Callout(symbols: []) == nil)
    }
}
