import Testing

@testable import StallSymbols

@Suite struct FunctionClassifierTests {
    private let functions = FunctionClassifier(InAppSettings(excludedModules: ["NIOCore"]))

    @Test(arguments: [
        "$s5notes9NoteStoreC4saveyyAA4NoteVF",  // notes.NoteStore.save
        "$sSa5notesE3sumyyF",  // an extension of Array in notes
        "main", "c_function", "_ZN6shapes4areaEv", nil,
    ])
    func theAppsFunctionsAreInApp(symbol: String?) {
        #expect(functions.isInApp(CodeLocation(symbol: symbol, file: "/src/notes/a.swift")))
    }

    @Test(arguments: [
        "$sSa6appendyyxnF",  // Array.append
        "$ss15ContiguousArrayV6appendyyxnF", "$s10Foundation4DataV5countSivg", "$sIeg_IegyT_TR", "$s7NIOCore3runyyF",
        "_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZSt4sortIPiEvT_S1_",
    ])
    func aLibrarysFunctionsAreNotEvenInTheAppsImage(symbol: String) {
        #expect(!functions.isInApp(CodeLocation(symbol: symbol, file: "/src/notes/a.swift")))
    }

    @Test func aSystemHeadersFunctionsAreNot() {
        #expect(!functions.isInApp(CodeLocation(symbol: "atoi", file: "/usr/include/stdlib.h")))
    }

    @Test func whatIsKnownIsWhatWasFoundOut() {
        let append = "$sSa6appendyyxnF"
        for _ in 0..<2 {
            #expect(functions[append].name == Demangler.functionName(append))
            #expect(!functions[append].isInApp)
            #expect(functions["_dispatch_worker_thread"].isRuntimeFrame)
            #expect(functions["main"].name == "main")
            #expect(!functions["main"].isRuntimeFrame && functions["main"].isInApp)
        }
    }

    @Test func moreThanAreKeptAreStillKnown() {
        for number in 0...FunctionClassifier.maximumFunctions { #expect(functions["f\(number)"].name == "f\(number)") }
        #expect(functions["f0"].name == "f0")
    }
}
