import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
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
        "", "pthread_mutex_lock", "__CFRunLoopRun", "main", "$", "$s", "_Z", "$sNotMangledAtAll", "$s9nope",
        "_ZNotMangled", "_ZNope", "na\u{308}me",
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

@Suite struct SymbolProbeTests {
    @Test func `the test's executable has symbols and debug information`() {
        let files = SymbolProbe(executable: "/proc/self/exe").files()
        #expect(files[.symbols] == .works())
        #expect(files[.debugInformation] == .works())
    }

    @Test func `a file that is no executable has neither`() {
        let files = SymbolProbe(executable: "/proc/self/stat").files()
        #expect(files[.symbols] == .missing())
        #expect(files[.debugInformation] == .missing())
        #expect(SymbolProbe(executable: "/nowhere").files()[.symbols] == .missing("/nowhere cannot be read"))
    }

    @Test func `only what the configuration asks for is tried`() {
        let probe = SymbolProbe(executable: "/proc/self/exe", settings: .none)
        #expect(probe.files()[.symbols] == .notTried("the configuration asks for no names"))
        let names = SymbolProbe(executable: "/proc/self/exe", settings: .names)
        #expect(names.libdw(isLoaded: true) == .notTried("the configuration asks for no lines"))
        #expect(names.files()[.debugInformation] == .notTried("the configuration asks for no lines"))
    }

    @Test func `a library that can be loaded is also found`() {
        let probe = SymbolProbe(executable: "/proc/self/exe")
        let isFound = probe.libdw(isLoaded: false) == .works("installed; loaded for the first report")
        #expect((probe.libdw(isLoaded: true) == .works()) == isFound)
    }
}

@Suite struct HostProbeTests {
    @Test func `the rules of this process are read`() {
        let environment = HostProbe.environment()
        #expect(environment.pid == getpid())
        #expect(environment.userID == geteuid())
        #expect(environment.seccompMode != nil)
        #expect(environment.isDumpable == true && !environment.kernel.isEmpty, "\(environment)")
    }

    @Test func `rules seen from outside are those seen from inside`() throws {
        let status = try #require(readSmallFile("/proc/self/status").flatMap(ProcessStatus.init))
        var outside = HostProbe.environment(of: getpid(), status)
        let inside = HostProbe.environment()
        // Root's files belong to root, dumpable or not.
        if geteuid() == 0 {
            #expect(outside.isDumpable == nil)
            outside.isDumpable = inside.isDumpable
        }
        #expect(outside == inside)
    }

    @Test func `labels of security modules`() {
        #expect(HostProbe.securityLabel("docker-default (enforce)\n") == "docker-default (enforce)")
        #expect(HostProbe.securityLabel("unconfined\n") == nil)
        #expect(HostProbe.securityLabel("system_u:system_r:container_t:s0\0") == "system_u:system_r:container_t:s0")
        #expect(HostProbe.securityLabel("") == nil)
        #expect(HostProbe.securityLabel(nil) == nil)
    }

    @Test func `missing files of a thread are missing sources`() {
        let sources = HostProbe.sources(thread: "/nowhere")
        for name in [Capabilities.FeatureName.syscall, .waitChannel, .schedstat, .stat, .status, .kernelStack] {
            #expect(sources[name] == .missing("No such file or directory"))
        }
        #expect(sources[.bootID] == .works())
    }
}
