import Testing

@testable import StallReports
@testable import StallSymbols

@Suite struct FunctionClassifierTests {
    private let functions = FunctionClassifier(InAppSettings(excludedModules: ["NIOCore"]))

    /// The owner of the function, compiled from `file` in the root package /src/notes.
    private func owner(
        _ symbol: String?, file: String? = nil, in functions: FunctionClassifier? = nil, isOutside: Bool = false
    ) -> CodeOwner {
        let location = CodeLocation(symbol: symbol, file: file, directory: file == nil ? nil : "/src/notes")
        return (functions ?? self.functions).owner(of: location, isOutsideDebugInformation: isOutside)
    }

    @Test(arguments: [
        "$s5notes9NoteStoreC4saveyyAA4NoteVF",  // notes.NoteStore.save
        "$sSa5notesE3sumyyF",  // an extension of Array in notes
        "main", "c_function", "_ZN6shapes4areaEv", "dispatch_table_lookup", nil,
    ])
    func functionOfRootPackageIsInApp(symbol: String?) {
        #expect(owner(symbol, file: "/src/notes/Sources/a.swift") == .app)
    }

    /// The name of a member of an extension begins with the extended type's module.
    @Test(arguments: [
        "$sSS5notesE4slugSSvgSSyXEfU_",  // closure #1 in String.slug.getter
        "$s20FoundationEssentials4DataV5notesE4fillyyFs5Int32VSwXEfU_",
        "$sSa5notesSiRszlE4slowyyF5localL_yyS2iRszlF",  // a function in Array<Int>.slow()
        "$sSS5notesE5lateryyYaFTQ0_",  // String.later() after a suspension
        "$sSa5notesSiRszlE5TokenV4workyyF",  // a type in the extension
        "$sSS5notesE4makeSaAASiRszlE5TokenVySi_GyFZ",  // a static function with such a result
        // A specialization for tuples and a closure.
        "$sST5notesE4eachyyy7ElementQzXEFSaySi_SitG_Tg528$s5notes2goyyFySi_Sit_tXEfU_Tf1cn_n",
    ])
    func extensionOfToolchainTypeIsInApp(symbol: String) {
        #expect(owner(symbol, file: "/src/notes/Sources/a.swift") == .app)
        #expect(owner(symbol, file: "/src/notes/.build/checkouts/notes/Sources/a.swift") == .dependency)
    }

    @Test(arguments: [
        "$sSTsE7forEachyyy7ElementQzKXEKF",  // an extension in the standard library
        "$sScTss5NeverORs_rlE4name8priority9operationScTyxABGSSSg_ScPSgxyYaYAcntcfC",
        // A specialization for a closure in an extension.
        "$s20FoundationEssentials4DataV15_RepresentationO22withUnsafeMutableBytesyxxSwKXEKlFs5Int32V_Tg504$s20a11Essentials4c18V5notesE4fillyyFs5I8VSwXEfU_Tf1cn_n",
    ])
    func toolchainFunctionOfAppsTypesIsLibrary(symbol: String) {
        #expect(owner(symbol, file: "/src/notes/Sources/a.swift") == .library)
    }

    @Test func moduleWithNameInPunycodeIsInApp() {
        #expect(owner("$s008mdule_n5a4saveyyF", file: "/src/notes/Sources/a.swift") == .app)
    }

    @Test(arguments: [
        "$sSa6appendyyxnF",  // Array.append
        "$ss15ContiguousArrayV6appendyyxnF", "$s10Foundation4DataV5countSivg", "$sIeg_IegyT_TR",
    ])
    func functionOfToolchainModuleIsLibrary(symbol: String) {
        #expect(owner(symbol, file: "/src/notes/Sources/a.swift") == .library)
        #expect(owner(symbol) == .library)
    }

    @Test(arguments: [
        "_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZSt4sortIPiEvT_S1_", "dispatch_time", "__DISPATCH_WAIT_FOR_QUEUE__",
        "_ZL8getCacheRKN5swift27TargetTypeContextDescriptorINS_9InProcessEEE",
        "_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_", "swift_release", "_swift_release_dealloc",
        "_ZN12_GLOBAL__N_112tryCastClassEPN5swift11OpaqueValueE", "_ZN7__swift9__runtime4llvm9StringRef4findEc",
        "CFRunLoopRunSpecific", "__CFRunLoopRun",
    ])
    func linkedRuntimeFunctionIsNotInApp(symbol: String) {
        #expect(owner(symbol) != .app)
        #expect(owner(symbol, isOutside: true) != .app)
    }

    /// C++ sees Swift's String as `swift::String`.
    @Test(arguments: [
        "_ZN5notes4loadERKN5swift6StringE", "_Z4loadRKN5swift6StringE", "_ZNK5notes5Store4sizeERKN5swift5ArrayIiEE",
    ])
    func `an app's C++ function with a Swift value is the app's`(symbol: String) {
        #expect(RuntimeLibrary(symbol: symbol) == nil)
        #expect(owner(symbol) == .app)
    }

    /// The debug information of an executable does not cover the ICU of a static Foundation.
    @Test(arguments: [
        "_ZN3icu12RegexMatcher12MatchChunkAtEiaR10UErrorCode", "_ZN6icu_7612RegexMatcher14findUsingChunkER10UErrorCode",
        "_ZNK3icu13UnicodeString7indexOfEDs",
    ])
    func linkedFoundationIsLibrary(symbol: String) {
        #expect(owner(symbol, isOutside: true) == .library)
    }

    @Test func sourceInCheckoutsIsDependency() {
        let grdb = "$s4GRDB9StatementC4stepyyF"
        for folder in ["/src/notes/.build", "/src/notes/.build-static", "/tmp/scratch", "/x/SourcePackages"] {
            #expect(owner(grdb, file: folder + "/checkouts/GRDB.swift/GRDB/Statement.swift") == .dependency)
            #expect(owner("c_function", file: folder + "/checkouts/CFoo/foo.c") == .dependency)
            #expect(owner(grdb, file: folder + "/registry/downloads/groue/GRDB/7.10.0/GRDB/Row.swift") == .dependency)
        }
    }

    @Test func rootPackageInFolderNamedCheckoutsIsInApp() {
        let own = CodeLocation(
            symbol: "$s5notes4saveyyF", file: "/data/checkouts/notes/Sources/a.swift",
            directory: "/data/checkouts/notes")
        #expect(functions.owner(of: own) == .app)
        var dependency = own
        dependency.file = "/data/checkouts/notes/.build/checkouts/GRDB.swift/a.swift"
        #expect(functions.owner(of: dependency) == .dependency)
    }

    /// Cargo's compiler runs in the folder of the crate that it compiles.
    @Test(arguments: [
        "/data/cargo/registry/src/index-1949cf8c6b5b557f/serde-1.0.228",
        "/usr/local/cargo/git/checkouts/serde-3c1f6a2b/9f1a2b3",
    ])
    func `a crate that Cargo has fetched is a dependency`(folder: String) {
        let location = CodeLocation(symbol: "_ZN5serde4saveE", file: folder + "/src/lib.rs", directory: folder)
        #expect(functions.owner(of: location) == .dependency)
    }

    @Test func `code of a foreign library needs a known source`() {
        let settings = InAppSettings(includedModules: ["notes"])
        for symbol in ["deflate", "$s5other4saveyyF"] {
            for (source, expected) in [("/src/a.c", CodeOwner.app), (nil, .dependency)] {
                let location = CodeLocation(symbol: symbol, file: source, directory: source.map { _ in "/src" })
                #expect(functions.owner(of: location, isForeign: true) == expected)
            }
        }
        let included = FunctionClassifier(settings)
        let own = CodeLocation(symbol: "$s5notes4saveyyF")
        #expect(included.owner(of: own, isForeign: true) == .app)
    }

    @Test func codeOutsideDebugInformationIsNotInApp() {
        #expect(owner("deflate", isOutside: true) == .dependency)
        #expect(owner("deflate") == .app)
    }

    @Test(arguments: [
        "/usr/include/stdlib.h", "/usr/local/include/a.hpp", "/usr/lib/gcc/a.h", "/opt/swift/usr/lib/swift/shims/a.h",
        "/opt/swift/usr/lib/swift_static/dispatch/a.h", "/opt/swift/usr/lib/clang/21/include/a.h",
        "/sdks/arm64/usr/include/stdlib.h", "/sdks/arm64/lib/gcc/aarch64-linux-gnu/16/../../../../include/c++/16/mutex",
        "/nix/store/abc-gcc-14.3.0/include/c++/14.3.0/bits/stl_algo.h",
        "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/slice/sort.rs",
        "/opt/rust/toolchains/stable/lib/rustlib/src/rust/library/core/src/slice/sort.rs",
        "/rust/deps/addr2line-0.25.1/src/function.rs",
    ])
    func functionInSystemHeaderIsLibrary(file: String) {
        #expect(owner("atoi", file: file) == .library)
    }

    @Test func settingsComeFirst() {
        let settings = InAppSettings(excludedModules: ["NIOCore", "Twice"], includedModules: ["Testing", "Twice"])
        let functions = FunctionClassifier(settings)
        #expect(owner("$s7NIOCore3runyyF", file: "/src/notes/a.swift", in: functions) == .dependency)
        #expect(owner("$s5Twice3runyyF", file: "/src/notes/a.swift", in: functions) == .dependency)
        #expect(owner("$s7Testing3runyyF", file: "/src/notes/a.swift", in: functions) == .app)
        // An extension in notes of a type in NIOCore.
        #expect(owner("$s7NIOCore10ByteBufferV5notesE4saveyyF", file: "/src/notes/a.swift", in: functions) == .app)
        #expect(owner("$s4GRDB3runyyF", in: functions) == .dependency)
        #expect(owner("$s4GRDB3runyyF") == .app)
    }

    /// Code of C has no module, so it is not one of those that the app names.
    @Test func codeOfCWithoutASourceIsADependencysIfTheAppNamesItsModules() {
        let named = FunctionClassifier(InAppSettings(includedModules: ["notes"]))
        #expect(owner("sqlite3VdbeExec", in: named) == .dependency)
        #expect(owner("sqlite3VdbeExec", file: "/src/notes/sqlite.c", in: named) == .app)
        #expect(owner("sqlite3VdbeExec") == .app)
        #expect(owner("main", in: named) == .app, "main.swift has no module")
        #expect(owner(nil, in: named) == .app, "a name that is missing may be any")
    }

    /// Any settings give an answer.
    @Test func invalidSettingsAreHarmless() {
        let words = ["", "/", "$s", "\0", "Swift", String(repeating: "x", count: 100_000)]
        let functions = FunctionClassifier(
            InAppSettings(excludedDirectories: words, excludedModules: words, includedModules: words))
        #expect(owner("$sSa6appendyyxnF", in: functions) == .dependency)
        #expect(owner("c_function", file: "/src/notes/a.c", in: functions) == .app)
        let rule = InAppRule(InAppSettings(excludedDirectories: words), imagePaths: [])
        // An interpreter is not the app that it runs.
        #expect(!rule.isInApp(imageAt: "/opt/python3.11", isExecutable: true))
        #expect(rule.isInApp(imageAt: "/opt/pythonic", isExecutable: true))
        #expect(rule.isInApp(imageAt: "/opt/notes", isExecutable: true))
    }

    @Test(arguments: [
        ("merged readTheConfiguration(_:)", StallReport.GeneratedCode.merged),
        ("Settings.shared.unsafeMutableAddressor", .accessor), ("outlined copy of Note", .outlined),
        ("initializeWithCopy for Job", .metadata), ("protocol witness for Worker.run() in conformance Miner", .thunk),
        ("type metadata accessor for Note", .metadata), ("static Kind.__derived_enum_equals(_:_:)", .synthesized),
        ("specialized outlined destroy of Note", .outlined),
        ("freestanding macro expansion #1 of repeated in module notes file Store.swift line 13 column 15", .macro),
    ])
    func compilerMadeFunctionIsKnownByName(name: String, kind: StallReport.GeneratedCode) {
        #expect(StallReport.GeneratedCode(function: name) == kind)
    }

    @Test(arguments: ["save()", "closure #1 in save()", "Note.title.getter", "specialized Store.save(_:)", "main"])
    func writtenFunctionIsNotCompilerMade(name: String) {
        #expect(StallReport.GeneratedCode(function: name) == nil)
    }

    @Test func keptFactsEqualNewlyFoundOnes() {
        let append = "$sSa6appendyyxnF"
        for _ in 0..<2 {
            #expect(functions[append].name == Demangler.functionName(append))
            #expect(functions[append].module == "Swift")
            #expect(functions["_dispatch_worker_thread"].isRuntimeFrame)
            #expect(functions["main"].name == "main")
            #expect(!functions["main"].isRuntimeFrame && functions["main"].module == nil)
        }
    }

    @Test func functionsBeyondTheKeptOnesAreStillKnown() {
        for number in 0...FunctionClassifier.maximumFunctions { #expect(functions["f\(number)"].name == "f\(number)") }
        #expect(functions["f0"].name == "f0")
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
    func `the function that makes the callout shows its kind`(symbol: String, callout: StallReport.Callout) {
        #expect(StallReport.Callout(symbols: ["$s5notes4workyyF", nil, symbol, "__CFRunLoopRun"]) == callout)
    }

    @Test func theInnermostCalloutCountsIfThereIsOne() {
        let symbols = [
            "work", "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__", "__CFRunLoopRun", "nested",
            "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__",
        ]
        #expect(StallReport.Callout(symbols: symbols) == .performedBlock)
        #expect(StallReport.Callout(symbols: ["work", nil, "main"]) == nil)
        #expect(StallReport.Callout(symbols: []) == nil)
    }
}

@Suite struct InAppRuleTests {
    private func isInApp(_ path: String, isExecutable: Bool = false, among others: [String] = []) -> Bool {
        InAppRule(InAppSettings(), imagePaths: [path] + others).isInApp(imageAt: path, isExecutable: isExecutable)
    }

    @Test func `the executable and libraries of its own are the app's, in any directory`() {
        for path in ["/opt/notes/bin/notes", "/usr/lib/notes/notes", "/usr/bin/notes", "notes"] {
            #expect(isInApp(path, isExecutable: true), "\(path)")
        }
        for path in [
            "/opt/notes/lib/libNotes.so", "/srv/libs/libNotes.so", "/usr/library/libNotes.so", "/lib6/libNotes.so",
            "/usr/libexec/notes/libNotes.so",
        ] { #expect(isInApp(path), "\(path)") }
    }

    @Test(arguments: [
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/swift/linux/libFoundation.so", "/usr/local/lib/libz.so", "/usr/local/lib64/libpq.so.5",
        "linux-vdso.so.1", "[vdso]", "",
    ])
    func `a library of the system, or an image without a file, is not the app's`(path: String) {
        #expect(!isInApp(path))
    }

    @Test(arguments: [
        ("/opt/notes/bin/notes", "/opt/notes/bin/notes", false),
        ("/opt/notes/lib/libNotes.so", "/opt/notes/bin/notes", false),
        ("/srv/notes/libNotes.so", "/srv/notes/notes", false), ("/srv/other/plugin.so", "/srv/notes/notes", true),
        ("/srv/cache/plugin.so", "/usr/bin/notes", true), ("/memfd:plugin (deleted)", "/usr/bin/notes", true),
        ("/tmp/x/notes", "/tmp/x/notes", false), ("/tmp/x/plugin.so", "/tmp/x/notes", true),
        ("/srv/plugin.so", "", false), ("/srv/plugin.so", "/notes", false), ("plugin.so", "/srv/notes", false),
    ])
    func `a library that was not installed with the executable is foreign`(
        path: String, executable: String, isForeign: Bool
    ) {
        #expect(InAppRule.isForeign(imageAt: path, executable: executable) == isForeign)
    }

    /// A program may be copied together with the toolchain's libraries.
    @Test func theToolchainsLibrariesBesideTheAppsAreNotInApp() {
        let bundle = ["/opt/game/game", "/opt/game/libswiftCore.so"]
        for path in ["/opt/game/libEngine.so", "/opt/game/plugins/libEnemyAI.so"] {
            #expect(isInApp(path, among: bundle))
        }
        for name in ["libswiftCore.so", "libFoundation.so", "lib_FoundationICU.so", "libdispatch.so", "libxml2.so.2"] {
            #expect(!isInApp("/opt/game/\(name)", among: bundle))
        }
        #expect(
            !isInApp("/opt/swift/usr/lib/swift/linux/x.so", among: ["/opt/swift/usr/lib/swift/linux/libswiftCore.so"]))
    }

    @Test func theToolchainsLibrariesAreNeverInApp() {
        let core = "/opt/swift/usr/lib/swift/linux/libswiftCore.so"
        #expect(isInApp("/opt/swift/usr/lib/swift/linux/libFoundation.so"))
        #expect(!isInApp("/opt/swift/usr/lib/swift/linux/libFoundation.so", among: [core]))
        #expect(isInApp("/opt/swift/usr/lib/swift/linux-app/libNotes.so", among: [core]))
        #expect(isInApp("/opt/notes/lib/libNotes.so", among: [core]))
    }
}

@Suite struct RuntimeFrameTests {
    @Test(arguments: [
        ("thunk for @escaping @callee_guaranteed () -> ()", "$sIeg_IegyT_TR"),
        ("partial apply for run()", "$s3app3runyyFTA"),
        ("static App.$main()", "$s3app3AppV5$mainyyFZ"), ("__CFRunLoopRun", "__CFRunLoopRun"),
        ("_dispatch_worker_thread", "_dispatch_worker_thread"), ("start_thread", "start_thread"),
    ])
    func knowsRuntimeFrames(function: String, symbol: String) {
        let generated = StallReport.GeneratedCode(function: function)
        #expect(RuntimeFrame.contains(function: function, generated: generated, symbol: symbol))
    }

    @Test(arguments: ["save()", "closure #1 in save()", "main", "specialized NoteStore.save(_:)", "dispatch_sync"])
    func ordinaryFunctionsAreNoRuntimeFrames(function: String) {
        #expect(!RuntimeFrame.contains(function: function, generated: nil, symbol: function))
    }
}
