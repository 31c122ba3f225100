import Testing

@testable import StallReports
@testable import StallSymbols

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
