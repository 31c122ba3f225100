import CLinux
import Foundation
import Glibc
import StallReports
import Synchronization
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallSymbols
@testable import StallWatch

/// The callers of a stalled async function: complete, correct and in the right order.
@Suite("Async callers", .serialized, .needsToolchain)
struct AsyncCallerTests {
    #if arch(x86_64) || arch(arm64)
        @Test(
            "callers of a running thread, captured by ptrace", .needsPtrace,
            arguments: AsyncScenario.all, AsyncBuild.allCases)
        func running(_ scenario: AsyncScenario, _ build: AsyncBuild) async throws {
            try expectCallers(of: scenario, build, by: .ptrace)
        }

        @Test("callers of a blocked thread, captured by read", arguments: AsyncScenario.all, AsyncBuild.allCases)
        func blocked(_ scenario: AsyncScenario, _ build: AsyncBuild) async throws {
            try expectCallers(of: scenario, build, by: .read)
        }
    #endif

    @Test("a thread without async functions has no async callers", .needsPtrace)
    func synchronous() throws {
        let gate = StallGate.shared
        let thread = try WorkerThread(name: "async-test") {
            gate.spin()
            gate.finish()
        }
        let captured = try Self.onAThreadOfItsOwn { try Self.captureStalled(by: .ptrace) }
        thread.join()
        #expect(captured.stack.frames.allSatisfy { $0.kind == .code })
    }

    private struct Captured: Sendable {
        var stack: CapturedStack
        var images: ImageList
    }

    private func expectCallers(
        of scenario: AsyncScenario, _ build: AsyncBuild, by method: StallReport.CaptureMethod
    ) throws {
        let library = try build.library()
        let captured = try Self.onAThreadOfItsOwn {
            try #require(library.start(scenario, blocked: method == .read))
            return try Self.captureStalled(by: method)
        }
        let stack = captured.stack
        #expect(stack.isComplete)
        #expect(stack.missingAsyncCallersReason == nil)
        let functions = names(of: stack.frames.filter { $0.kind != .code }, in: captured.images, library)
        let callers = scenario.callers(in: build)
        let found = functions.filter { StallReport.GeneratedCode(function: $0) == nil }
        #expect(found.count > callers.count, "\(functions)")
        #expect(zip(callers, found).allSatisfy { $1.contains($0) }, "\(functions)")
        // Then follow the scenario's own closures, and last the function that ends the task.
        #expect(found.dropFirst(callers.count).dropLast().allSatisfy { $0.contains("closure #") }, "\(functions)")
        #expect(stack.frames.count { $0.kind == .taskStart } == 1, "\(functions)")
        let kinds = stack.frames.map(\.kind)
        let first = try #require(kinds.firstIndex { $0 != .code })
        let last = try #require(kinds.firstIndex(of: .taskStart))
        #expect(kinds[first..<last].allSatisfy { $0 == .asyncCaller })
        // After the chain follow the thread's own frames, which run its jobs.
        #expect(kinds[(last + 1)...].allSatisfy { $0 == .code } && last + 1 < kinds.count)
    }

    private static func captureStalled(by method: StallReport.CaptureMethod) throws -> Captured {
        let result = Result {
            let engine = try CUnwindEngine()
            let probe = try ThreadProbe(thread: try #require(StallGate.shared.waitForThread()))
            if method == .read {
                // The thread reports itself before it waits.
                #expect(eventually { probe.read()?.shown?.call != nil })
            }
            let images = engine.images()
            let stack = try captured(tries: 100) { try engine.capture(probe, at: engine.read(probe), by: method) }
            return Captured(stack: try #require(stack), images: images)
        }
        #expect(StallGate.shared.open())
        return try result.get()
    }

    /// Runs `body` on its own thread, because the scenario uses the pool's threads.
    private static func onAThreadOfItsOwn(_ body: @escaping @Sendable () throws -> Captured) throws -> Captured {
        let results = Collected<Result<Captured, any Error>>()
        try WorkerThread(name: "async-capture") { results.add(Result(catching: body)) }.join()
        return try #require(results.all.first).get()
    }

    private func names(
        of frames: [CapturedFrame], in images: ImageList, _ library: AsyncLibrary
    ) -> [String] {
        let symbolicator = Symbolicator(.names)
        return frames.map { frame in
            guard let image = images.image(at: frame.address) else { return "?" }
            let identity = ImageIdentity(
                path: image.path == library.path ? library.symbols : image.path, buildID: image.buildIDText,
                contentHash: image.contentHashText, isOwnExecutable: image.isExecutable
            )
            return symbolicator.symbol(at: frame.address - image.base, in: identity).map(Demangler.functionName) ?? "?"
        }
    }
}

enum AsyncBuild: String, CaseIterable, Sendable {
    case debug
    case debugStripped
    case release
    case releaseStripped

    /// The library with symbols, compiled once per build.
    private static let whole = Dictionary(
        uniqueKeysWithValues: [debug, release].map { build in (build, Result { try build.compile() }) }
    )
    private static let libraries = Dictionary(
        uniqueKeysWithValues: allCases.map { build in (build, Result { try build.load() }) }
    )

    func library() throws -> AsyncLibrary { try #require(Self.libraries[self]).get() }

    private var path: String { "\(SymbolicationToolchain.scratch)/async-\(rawValue).so" }

    private func compile() throws -> String {
        let source = Repository.support.appendingPathComponent("AsyncScenarios/async_scenarios.swift").path
        try SymbolicationToolchain.run(
            "swiftc",
            [
                self == .debug ? "-Onone" : "-O", "-g", "-swift-version", "6", "-parse-as-library", "-emit-library",
                "-module-name", "Scenarios", source, "-o", path, "-Xlinker", "--build-id",
                // Like the package manager on Linux: async frames are found by their frame pointers.
                "-Xcc", "-fno-omit-frame-pointer",
            ]
        )
        return path
    }

    private func load() throws -> AsyncLibrary {
        let isDebug = self == .debug || self == .debugStripped
        let symbols = try #require(Self.whole[isDebug ? .debug : .release]).get()
        if path != symbols { try SymbolicationToolchain.run("llvm-objcopy", ["--strip-all", symbols, path]) }
        return try AsyncLibrary(path: path, symbols: symbols)
    }
}

struct AsyncLibrary: Sendable {
    private typealias Start =
        @convention(c) (UnsafePointer<CChar>, @convention(c) () -> Void, @convention(c) () -> Void) -> Bool

    let path: String
    let symbols: String
    private let start: Start

    init(path: String, symbols: String) throws {
        self.path = path
        self.symbols = symbols
        let handle = try #require(dlopen(path, RTLD_NOW | RTLD_LOCAL), "\(String(cString: dlerror()))")
        let function = try #require(dlsym(handle, "start_async_scenario"))
        // The type matches the declaration of that name in async_scenarios.swift.
        start = unsafeBitCast(function, to: Start.self)
    }

    func start(_ scenario: AsyncScenario, blocked: Bool) -> Bool {
        start(
            scenario.name, blocked ? { StallGate.shared.block() } : { StallGate.shared.spin() },
            { StallGate.shared.finish() }
        )
    }
}

/// A stall in async code (Tests/Support/AsyncScenarios) with a known chain of callers.
struct AsyncScenario: Sendable, CustomTestStringConvertible {
    var name: String
    /// Parts of the async callers' names, nearest first, up to the scenario's closure and without the compiler's
    /// thunks.
    private let callers: [String]
    /// The callers in optimized builds, where a function inlined into its caller has no frame.
    private let optimized: [String]

    init(_ name: String, _ callers: [String], optimized: [String]? = nil) {
        self.name = name
        self.callers = callers
        self.optimized = optimized ?? callers
    }

    func callers(in build: AsyncBuild) -> [String] {
        switch build {
        case .debug, .debugStripped: callers
        case .release, .releaseStripped: optimized
        }
    }

    var testDescription: String { name }

    static let all: [AsyncScenario] = [
        .init("MainActor, three deep", ["Model.level2", "Model.level1"]),
        .init("nonisolated, three deep", ["Plain.p2", "Plain.p1"]),
        .init("detached", ["Plain.p2", "Plain.p1"]),
        .init("a callee that never suspends", ["Plain.callsNeverSuspends"]),
        .init("checked continuation", ["continuation"], optimized: []),
        .init("task group child", ["Plain.p2"]),
        .init("async let child", ["Plain.p2"]),
        .init(
            "actor, existential, generic, closure", ["generic", "RealWorker.go", "Counter.run"],
            optimized: ["RealWorker.go"]
        ),
        .init("actor hop", []),
        .init("AsyncStream.map", ["AsyncMapSequence.Iterator.next", "stream"], optimized: ["stream"]),
        .init("after a sleep", ["callsSleeper"]),
        .init("MainActor.run", ["onMain"], optimized: []),
        .init("many arguments", ["callsMany"]),
        .init(
            "task-local value",
            ["Plain.p2", "closure #1 in taskLocal", "TaskLocal.withValueImpl", "TaskLocal.withValue", "taskLocal"],
            optimized: ["Plain.p2", "taskLocal"]
        ),
        .init(
            "cancellation handler",
            ["Plain.p2", "closure #1 in cancellation", "withTaskCancellationHandler", "cancellation"]
        ),
        .init("recursion, ten deep", Array(repeating: "recursive", count: 10)),
        .init("throwing", ["Plain.throwing2", "catches"]),
        .init("immediate task", []),
        .init("task in a task", ["Plain.p2"]),
        .init("unsafe continuation", []),
    ]
}

/// The point at which a stalling thread reports itself and waits to be resumed.
final class StallGate: Sendable {
    private let thread = Atomic<Int32>(0)
    private let isOpen = Atomic<Bool>(false)
    private let hasFinished = Atomic<Bool>(false)
    private let opened = LinuxSupport.Semaphore()

    static let shared = StallGate()

    /// Keeps the calling thread on CPU until ``open()``, for at most 20 s.
    func spin() {
        let end = monotonicNow() + 20_000_000_000
        thread.store(clinux_gettid(), ordering: .releasing)
        while !isOpen.load(ordering: .acquiring), monotonicNow() < end {}
    }

    /// Keeps the calling thread in a system call until ``open()``, for at most 20 s.
    func block() {
        let end = monotonicNow() + 20_000_000_000
        thread.store(clinux_gettid(), ordering: .releasing)
        // The wait may return early without a post; the test then captures the thread's next wait.
        while !isOpen.load(ordering: .acquiring), monotonicNow() < end { opened.wait(until: end) }
    }

    func finish() { hasFinished.store(true, ordering: .releasing) }

    /// Waits up to 2 minutes for the stalling thread (other tests may keep the pool busy); `nil` if it does not appear.
    func waitForThread() -> Int32? {
        wait { thread.load(ordering: .acquiring) != 0 } ? thread.load(ordering: .relaxed) : nil
    }

    /// Resumes the stalling thread and waits for the scenario's end, for at most 2 minutes; afterwards the gate is
    /// ready for the next scenario.
    func open() -> Bool {
        isOpen.store(true, ordering: .releasing)
        opened.post()
        let isOver = wait { hasFinished.load(ordering: .acquiring) }
        thread.store(0, ordering: .relaxed)
        isOpen.store(false, ordering: .relaxed)
        hasFinished.store(false, ordering: .relaxed)
        return isOver
    }

    private func wait(for condition: () -> Bool) -> Bool {
        for _ in 0..<120_000 {
            if condition() { return true }
            usleep(1000)
        }
        return false
    }
}
