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
        #expect(environment.isDumpable == true)
        #expect(!environment.kernel.isEmpty)
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

@Suite struct HangTextTests {
    private func thread(
        _ id: Int32, _ name: String? = nil, functions: [String] = [], lock: StallReport.Lock? = nil,
        _ report: inout StallReport
    ) -> StallReport.OtherThread {
        let first = report.frames.count
        report.frames += functions.map {
            StallReport.Frame(
                offset: "0x1", function: $0, file: "/app/Notes.swift", line: 7, isInApp: true, kind: .code)
        }
        report.stacks.append(Array(first..<report.frames.count))
        return StallReport.OtherThread(
            thread: StallReport.ThreadDescription(id: id, name: name), stack: report.stacks.count - 1,
            threadState: .blocked, heldMicroseconds: 0, lock: lock)
    }

    private func mutex(ownedBy owner: Int32, isDeadlock: Bool = false) -> StallReport.Lock {
        let owner = StallReport.LockOwner(thread: StallReport.ThreadDescription(id: owner, name: nil), isRunning: false)
        return StallReport.Lock(
            kind: .pthreadMutex, function: "pthread_mutex_lock", isDeadlock: isDeadlock, owners: [owner])
    }

    /// A report whose main thread is in no code of the app.
    private func idle() throws -> StallReport {
        var report = try StallReport.literal()
        report.samples = []
        report.cause = nil
        return report
    }

    @Test func `deadlocked threads come first, with the app's functions`() throws {
        var report = try idle()
        report.otherThreads = [
            thread(1, functions: ["busy()"], &report),
            thread(2, functions: ["first()", "test()"], lock: mutex(ownedBy: 3, isDeadlock: true), &report),
            thread(3, lock: mutex(ownedBy: 2, isDeadlock: true), &report),
        ]
        #expect(
            HangText(report).lines == [
                "thread 2 is in a deadlock: waits in pthread_mutex_lock for the mutex, which thread 3 holds",
                "    first()  /app/Notes.swift:7", "    test()  /app/Notes.swift:7",
                "thread 3 is in a deadlock: waits in pthread_mutex_lock for the mutex, which thread 2 holds",
                "thread 1 waits", "    busy()  /app/Notes.swift:7",
                "in no code of the app: thread 4700 \"notes\"",
            ])
    }

    @Test func `a thread of a program named like the monitor's threads is shown`() throws {
        var report = try idle()
        report.loop.thread?.name = "stallwatch-app"
        report.otherThreads = [thread(2, "stallwatch-app", functions: ["busy()"], &report)]
        #expect(
            HangText(report).lines == [
                "thread 2 \"stallwatch-app\" waits", "    busy()  /app/Notes.swift:7",
                "in no code of the app: thread 4700 \"stallwatch-app\"",
            ])
    }

    @Test func `a program in which nothing runs waits for an event`() throws {
        var report = try idle()
        report.otherThreads = [thread(1, functions: [], &report)]
        let lines = HangText(report).lines
        #expect(lines.first == "in no code of the app: thread 4700 \"notes\", thread 1")
        #expect(lines.last?.contains("a continuation that was never resumed") == true)
    }

    @Test func `the main thread has the report's stack and lock`() throws {
        var report = try StallReport.literal()
        report.cause = StallReport.Cause(
            kind: .lock, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 1,
            uncertaintyMilliseconds: 0, lock: mutex(ownedBy: 3))
        let lines = HangText(report).lines
        #expect(lines.first == "thread 4700 \"notes\" waits in pthread_mutex_lock for the mutex, which thread 3 holds")
        #expect(lines.dropFirst().first == "    NoteStore.save(_:)")
    }

    @Test func `a deep stack is cut short`() throws {
        var report = try idle()
        report.otherThreads = [thread(1, functions: (1...9).map { "f\($0)()" }, &report)]
        #expect(HangText(report).lines.filter { $0.hasPrefix("    ") }.count == 7)
        #expect(HangText(report).lines.contains("    … 3 more"))
    }

    @Test func `tasks in the app's code are said to wait, once with what they wait for`() throws {
        var report = try idle()
        let functions = ["load()", "test()", "main"].map { thread(1, functions: [$0], &report).stack }
        func task(_ id: UInt64, _ wait: TaskList.Wait, _ target: UInt64? = nil, _ function: Int? = nil) -> TaskList.Task
        {
            .init(id: id, state: .suspended, wait: wait, target: target, stack: function.flatMap { functions[$0] })
        }
        report.tasks = TaskList(tasks: [
            task(1, .task, 2, 2), task(2, .task, 3, 1), task(3, .continuation, nil, 0), task(4, .sleep),
            task(5, .task, 6, 0), task(6, .task, 5, 0),
        ])
        let lines = HangText(report).lines
        #expect(
            lines.suffix(2) == [
                "2 tasks in `load()` at Notes.swift:7 await a task that waits for this one: a deadlock",
                "1 task in `test()` at Notes.swift:7 awaits a task in `load()` at Notes.swift:7, which awaits a continuation",
            ], "\(lines)")
        #expect(!lines.contains { $0.contains("never resumed") })
    }

    @Test func `threads that were not captured are counted`() throws {
        var report = try idle()
        report.omittedThreads = 12
        #expect(HangText(report).lines.contains("not captured, because there are too many: 12"))
    }
}
