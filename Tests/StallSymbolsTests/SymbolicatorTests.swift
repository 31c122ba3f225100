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

@Suite struct SymbolicatorTests {
    private let directory = TemporaryDirectory.ofTest()

    /// An image without debug information whose file may not be there yet.
    private func image(_ name: String, _ elf: SmallELF) throws -> ImageIdentity {
        let other = try ELFFile(path: try directory.write("other", elf.bytes))
        return ImageIdentity(path: directory.path(name), buildID: nil, contentHash: other.contentHash())
    }

    /// As where the program had no descriptor left.
    @Test func `a file that could not be opened is read for the next report`() throws {
        var elf = SmallELF(symbols: [
            .init(name: "save", address: 0x1000, size: 5), .init(name: "write", address: 0x1015),
        ])
        // A call of `write`.
        elf.instructions = [0xe8, 0x10, 0, 0, 0]
        let image = try image("late", elf)
        let symbolicator = Symbolicator(.names)
        func names() -> [String?] {
            [
                symbolicator.lookUp(0x1000, in: image, deadline: .max).locations.last?.symbol,
                symbolicator.calledFunction(before: 0x1005, in: image)?.symbol,
            ]
        }
        #expect(names() == [nil, nil] && symbolicator.reason(for: image) != nil)
        try directory.write("late", elf.bytes)
        #expect(names() == [nil, nil], "a report has one answer")
        symbolicator.releaseMemory()
        #expect(names() == ["save", "write"] && symbolicator.reason(for: image) == nil)
        symbolicator.releaseMemory()
        try directory.write("late", "another file")
        #expect(names() == ["save", "write"], "what was read is kept")
    }

    /// Without a reason, a function without a name would not end the search for the culprit.
    @Test func `a stripped image says why functions have no names`() throws {
        let elf = SmallELF(dynamicSymbols: [.init(name: "main", address: 0x1000)])
        let image = try image("stripped", elf)
        try directory.write("stripped", elf.bytes)
        let symbolicator = Symbolicator(.names)
        #expect(symbolicator.lookUp(0x2000, in: image, deadline: .max).locations.last?.symbol == nil)
        #expect(symbolicator.reason(for: image) == "only functions that it exports have names")
    }

    /// Without it, a function without a name would not count as the app's.
    @Test func `the reason for missing lines stays when there are too many answers`() throws {
        let elf = SmallELF(symbols: [.init(name: "save", address: 0x1000, size: 0x8000)])
        let image = try image("whole", elf)
        try directory.write("whole", elf.bytes)
        let symbolicator = Symbolicator(.lines)
        for offset in 0...UInt64(Symbolicator.maximumAnswers) {
            #expect(symbolicator.lookUp(0x1000 + offset, in: image, deadline: .max).locations.last?.symbol == "save")
        }
        #expect(symbolicator.reason(for: image) == "no debug information was found")
    }
}

@Suite struct DebugFilesTests {
    private let directory = TemporaryDirectory.ofTest()

    /// As after `ld-linux.so ./notes`, where /proc does not lead to it.
    @Test func `an executable that is opened by its path may have been replaced`() throws {
        let path = try directory.write("notes", SmallELF(symbols: []).bytes)
        let files = DebugFiles(ownExecutable: path)
        var image = ImageIdentity(path: path, buildID: nil, isOwnExecutable: true)
        image.contentHash = try ELFFile(path: path).contentHash()
        #expect((try? files.file(of: image)) != nil)
        image.contentHash = "0123456789abcdef"
        let reason = "its file may have been replaced: it has no build ID, and other contents"
        #expect(throws: DebugFiles.Missing(reason: reason)) { try files.file(of: image) }
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
