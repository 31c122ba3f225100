import Glibc
import Testing

@testable import StallWatch

/// The callers of an async function that stalls: all there, right, and in the right order.
@Suite("Async callers", .serialized)
struct AsyncCallerTests {
    #if arch(x86_64) || arch(arm64)
        @Test("callers of a running thread", arguments: AsyncScenario.all)
        func running(_ scenario: AsyncScenario) async throws {
            let captured = try await capture(scenario)
            let stack = captured.stack
            #expect(stack.isComplete)
            #expect(stack.missingAsyncCallersReason == nil)
            let functions = names(of: stack.frames.filter { $0.kind != .code }, in: captured.images)
            #expect(functions.count >= scenario.callers.count, "\(functions)")
            for (expected, found) in zip(scenario.callers, functions) {
                #expect(found.contains(expected), "\(functions)")
            }
            // Behind the ones that are known come the scenario's own closures, and last what ends the task.
            #expect(stack.frames.count { $0.kind == .taskStart } == 1, "\(functions)")
            let kinds = stack.frames.map(\.kind)
            let first = try #require(kinds.firstIndex { $0 != .code })
            let last = try #require(kinds.firstIndex(of: .taskStart))
            #expect(kinds[first..<last].allSatisfy { $0 == .asyncCaller })
            // The thread's own frames go on behind the chain, with what runs its jobs.
            #expect(kinds[(last + 1)...].allSatisfy { $0 == .code } && last + 1 < kinds.count)
        }
    #endif

    @Test("a thread without async functions has no async callers")
    func synchronous() async throws {
        let thread = try WorkerThread(name: "async-test") { StallGate.shared.stall() }
        let captured = await captureStalled()
        StallGate.shared.open()
        thread.join()
        #expect(try captured.get().stack.frames.allSatisfy { $0.kind == .code })
    }

    private struct Captured: Sendable {
        var stack: CapturedStack
        var images: ImageList
    }

    private func capture(_ scenario: AsyncScenario) async throws -> Captured {
        let task = Task.detached { await scenario.run() }
        let result = await captureStalled()
        StallGate.shared.open()
        _ = await task.value
        return try result.get()
    }

    /// Captures the stalled thread on a thread of its own: the pool's threads are the scenario's.
    private func captureStalled() async -> Result<Captured, any Error> {
        await withCheckedContinuation { continuation in
            do {
                let thread = try WorkerThread(name: "async-capture") {
                    continuation.resume(
                        returning: Result {
                            let engine = try CUnwindEngine()
                            let thread = try #require(StallGate.shared.waitForThread())
                            let images = engine.images()
                            return Captured(stack: try engine.capture(thread, by: .stop), images: images)
                        }
                    )
                }
                thread.detach()
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }

    private func names(of frames: [CapturedStack.Frame], in images: ImageList) -> [String] {
        let symbolicator = Symbolicator(.names)
        return frames.map { frame in
            guard let image = images.image(at: frame.address) else { return "?" }
            let identity = ImageIdentity(path: image.path, buildID: image.buildID, isOwnExecutable: image.isExecutable)
            return symbolicator.symbol(at: frame.address - image.base, in: identity).map(Demangler.functionName) ?? "?"
        }
    }
}
