import Testing
import TestSupport

@testable import StallSymbols

@Suite struct CodeLocationTests {
    @Test(arguments: [
        ("Sources/engine/engine.cpp", "/src/notes", "/src/notes/Sources/engine/engine.cpp"),
        (".build/checkouts/CFoo/foo.c", "/src/notes", "/src/notes/.build/checkouts/CFoo/foo.c"),
        ("/src/a.c", "/src/notes", "/src/a.c"), ("<stdin>", "/src/notes", "<stdin>"), ("a.c", ".", "a.c"),
        ("a.c", nil, "a.c"),
    ])
    func relativePathIsOfTheCompilersDirectory(file: String, directory: String?, path: String) {
        #expect(CodeLocation.sourcePath(file, compiledIn: directory) == path)
    }
}

@Suite struct DemanglerTests {
    @Test(arguments: [
        ("$s5notes9NoteStoreC4saveyyAA4NoteVF", "NoteStore.save(_:)"),
        ("$s5notes4main5countySi_tF", "main(count:)"),
        ("$s5notes9NoteStoreC4saveyyAA4NoteVFTm", "merged NoteStore.save(_:)"),
        ("$s5notesyyXEfU_", "closure #1 in notes"),
        ("$s5notesyyYacfU1_TATQ0_", "partial apply for closure #3 in notes"),
        ("$s5notesySicfU0_yyXEfU_", "closure #1 in closure #2 in notes"),
        ("_ZN5notes5StoreC1Ev", "notes::Store::Store()"),
        ("_Z4saveRKSs", "save(std::string const&)"),
    ])
    func aMangledNameIsTurnedIntoWhatWasWritten(symbol: String, name: String) {
        #expect(Demangler.functionName(symbol) == name)
    }

    @Test(arguments: [
        "", "pthread_mutex_lock", "__CFRunLoopRun", "main", "$", "$s", "_Z", "$sNotMangledAtAll", "_ZNotMangled",
        "na\u{308}me",
    ])
    func otherNamesAreUnchanged(symbol: String) {
        #expect(Demangler.functionName(symbol) == symbol)
    }

    /// Symbol tables are untrusted input: any bytes give a name and no crash.
    @Test func damagedNamesDoNotCrashTheDemangler() {
        let good = Array("$s5notes9NoteStoreC4saveyyAA4NoteV_SayAFGtYaKF".utf8)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<3_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let place = Int.random(in: 2..<bytes.count, using: &generator)
                bytes[place] = UInt8.random(in: 0x20...0x7e, using: &generator)
            }
            let symbol = String(
                decoding: bytes.prefix(Int.random(in: 2...bytes.count, using: &generator)), as: UTF8.self)
            #expect(!Demangler.functionName(symbol).isEmpty)
        }
    }
}
