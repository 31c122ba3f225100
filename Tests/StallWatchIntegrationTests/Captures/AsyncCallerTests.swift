import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallSymbols
@testable import StackCapture
@testable import StallWatch

/// The callers of a stalled async function: complete, correct and in the right order.
@Suite("Async callers", .serialized, .needsToolchain)
struct AsyncCallerTests {
    #if arch(x86_64) || arch(arm64)
        @Test("callers of a running thread, captured by ptrace", arguments: AsyncScenario.all, AsyncBuild.allCases)
        func running(_ scenario: AsyncScenario, _ build: AsyncBuild) async throws {
            try expectCallers(of: scenario, build, by: .ptrace)
        }

        @Test("callers of a blocked thread, captured by read", arguments: AsyncScenario.all, AsyncBuild.allCases)
        func blocked(_ scenario: AsyncScenario, _ build: AsyncBuild) async throws {
            try expectCallers(of: scenario, build, by: .read)
        }
    #endif

    @Test("a thread without async functions has no async callers")
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
        of scenario: AsyncScenario, _ build: AsyncBuild, by method: CapturedStack.Method
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
        let found = functions.filter { StallReport.CompilerGenerated(function: $0) == nil }
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

    /// Captures the stalled thread and resumes it.
    private static func captureStalled(by method: CapturedStack.Method) throws -> Captured {
        let result = Result {
            let engine = try CUnwindEngine()
            let thread = try #require(StallGate.shared.waitForThread())
            if method == .read {
                // The thread reports itself before it waits.
                #expect(eventually { (try? engine.status(of: thread))?.state == .blocked })
            }
            let images = engine.images()
            return Captured(stack: try engine.capture(thread, by: method), images: images)
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
        of frames: [CapturedStack.Frame], in images: ImageList, _ library: AsyncLibrary
    ) -> [String] {
        let symbolicator = Symbolicator(.names)
        return frames.map { frame in
            guard let image = images.image(at: frame.address) else { return "?" }
            let identity = ImageIdentity(
                path: image.path == library.path ? library.symbols : image.path, buildID: image.buildIDText,
                isOwnExecutable: image.isExecutable
            )
            return symbolicator.symbol(at: frame.address - image.base, in: identity).map(Demangler.functionName) ?? "?"
        }
    }
}
