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
