import StallReports
import Testing

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
        "CFRunLoopRunSpecific", "__CFRunLoopRun",
    ])
    func linkedRuntimeFunctionIsNotInApp(symbol: String) {
        #expect(owner(symbol) != .app)
        #expect(owner(symbol, isOutside: true) != .app)
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

    @Test func codeOutsideDebugInformationIsNotInApp() {
        #expect(owner("deflate", isOutside: true) == .dependency)
        #expect(owner("deflate") == .app)
    }

    @Test(arguments: [
        "/usr/include/stdlib.h", "/usr/local/include/a.hpp", "/usr/lib/gcc/a.h", "/opt/swift/usr/lib/swift/shims/a.h",
        "/opt/swift/usr/lib/swift_static/dispatch/a.h", "/opt/swift/usr/lib/clang/21/include/a.h",
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

    /// Any settings give an answer.
    @Test func invalidSettingsAreHarmless() {
        let words = ["", "/", "$s", "\0", "Swift", String(repeating: "x", count: 100_000)]
        let functions = FunctionClassifier(
            InAppSettings(excludedDirectories: words, excludedModules: words, includedModules: words))
        #expect(owner("$sSa6appendyyxnF", in: functions) == .dependency)
        #expect(owner("c_function", file: "/src/notes/a.c", in: functions) == .app)
        let rule = InAppRule(InAppSettings(excludedDirectories: words), imagePaths: [])
        #expect(rule.isInApp(imageAt: "/opt/notes", isExecutable: true))
    }

    @Test(arguments: [
        ("merged readTheConfiguration(_:)", StallReport.CompilerGenerated.merged),
        ("Settings.shared.unsafeMutableAddressor", .accessor), ("outlined copy of Note", .outlined),
        ("initializeWithCopy for Job", .metadata), ("protocol witness for Worker.run() in conformance Miner", .thunk),
        ("type metadata accessor for Note", .metadata), ("static Kind.__derived_enum_equals(_:_:)", .synthesized),
        ("specialized outlined destroy of Note", .outlined),
        ("freestanding macro expansion #1 of repeated in module notes file Store.swift line 13 column 15", .macro),
    ])
    func compilerMadeFunctionIsKnownByName(name: String, kind: StallReport.CompilerGenerated) {
        #expect(StallReport.CompilerGenerated(function: name) == kind)
    }

    @Test(arguments: ["save()", "closure #1 in save()", "Note.title.getter", "specialized Store.save(_:)", "main"])
    func writtenFunctionIsNotCompilerMade(name: String) {
        #expect(StallReport.CompilerGenerated(function: name) == nil)
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
