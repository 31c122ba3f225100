import CLinux
import CUnwindTestSupport
import Dispatch
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

/// A capture has no effect on blocking calls: no EINTR, no early return, and a complete stack every time; that the same
/// calls under a plain signal fail is a check of the engine, with the other ones.
@Suite(.serialized) struct InterruptedCallsTests {
    static let captures = 60
    /// The duration of each blocking call; sleep(3) always takes at least a second.
    static let milliseconds: UInt32 = 12

    @Test(arguments: 0..<cunwind_test_call_count())
    func aCaptureInterruptsNoWait(index: Int) throws {
        let stolen = CPUSteal()
        let call = cunwind_test_call_at(index)
        let name = String(cString: call.name)
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let blocker = try #require(cunwind_test_blocker_start(index, Self.milliseconds))
        let thread = cunwind_test_blocker_tid(blocker)
        var generator = SystemRandomNumberGenerator()
        var incomplete: [String] = []
        var withoutFunction = 0
        var taken = 0
        var methods: [StallReport.CaptureMethod: Int] = [:]
        var attempts = 0
        let end = endOfPatience
        while attempts < Self.captures, monotonicNow() < end {
            usleep(.random(in: 0..<4000, using: &generator))
            let captured = Result { () throws(CaptureFailure) in try capture.capture(thread: thread) }
            // It has no CPU.
            if captured.isForLackOfCPU { continue }
            attempts += 1
            guard let stack = try? captured.get() else { continue }
            taken += 1
            methods[stack.method, default: 0] += 1
            if !stack.isComplete { incomplete.append(stack.incompleteReason ?? "?") }
            let isInCall = stack.frames.contains { cunwind_test_call_contains(index, $0.lookupAddress) }
            // Between two calls the thread runs outside the function, but a blocked thread is always in it.
            if stack.threadState != .running, !isInCall { withoutFunction += 1 }
        }
        let result = cunwind_test_blocker_stop(blocker)
        print("\(name): \(result.iterations) calls, \(taken) captures \(methods)")
        #expect(result.interrupted == 0, "\(name): \(result.interrupted) of \(result.iterations) calls gave EINTR")
        // The kernel's timeouts count ticks. After CPU steal, several late ticks arrive at once.
        stolen.excuses {
            #expect(result.early == 0, "\(name): \(result.early) of \(result.iterations) calls returned early")
        }
        #expect(result.failed == 0, "\(name): error \(result.error)")
        // A thread that moves on during every attempt to read it has no stack; that is rare.
        #expect(attempts == Self.captures && taken >= Self.captures * 9 / 10)
        #expect(incomplete.isEmpty, "\(name): \(incomplete.count) incomplete stacks: \(Set(incomplete))")
        #expect(withoutFunction == 0, "\(name): \(withoutFunction) stacks without the calling function")
    }
}

/// A capture has no effect on the waits of Foundation and Dispatch either.
///
/// These libraries resume a wait after a signal (measured: none of 40 plain signals to a thread in `Thread.sleep` ended
/// it early), so ``InterruptedCallsTests`` has the proof that a signal is visible. These tests show that the stack of
/// such a thread is complete, even through functions without unwind information, and that each wait has the right
/// result.
@Suite(.serialized) struct InterruptedSwiftCallsTests {
    static let captures = 100
    /// The waits that the captures are spread over, at least.
    static let rounds = 20
    /// The longest time that the captures may take, in nanoseconds: a busy machine may need seconds to start a process.
    static let timeLimit: UInt64 = 60_000_000_000

    @Test(arguments: SwiftWait.allCases)
    func aCaptureInterruptsNoWait(wait: SwiftWait) throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let symbolicator = Symbolicator(SymbolicationSettings())
        let waiter = Waiter(wait)
        var generator = SystemRandomNumberGenerator()
        var incomplete: [String] = []
        var withoutFunction: [[String]] = []
        var taken = 0, attempts = 0
        let began = monotonicNow()
        var methods: [StallReport.CaptureMethod: Int] = [:]
        while attempts < Self.captures || waiter.rounds <= Self.rounds, monotonicNow() - began < Self.timeLimit {
            usleep(.random(in: 0..<6000, using: &generator))
            let captured = Result { () throws(CaptureFailure) in try capture.capture(thread: waiter.thread) }
            if captured.isForLackOfCPU { continue }
            attempts += 1
            guard let stack = try? captured.get() else { continue }
            taken += 1
            methods[stack.method, default: 0] += 1
            if !stack.isComplete { incomplete.append(stack.incompleteReason ?? "?") }
            let images = capture.images()
            let functions = stack.frames.map { frame in
                images.image(at: frame.lookupAddress).flatMap {
                    symbolicator.symbol(at: frame.lookupAddress - $0.base, in: ImageIdentity($0))
                }.map(Demangler.functionName) ?? "?"
            }
            // The thread is always in its first function and in the loop that it calls.
            if !functions.contains(where: { $0.contains("waitAgainAndAgain") }) { withoutFunction.append(functions) }
            // Between two waits the thread is outside the function; it may block there only to start the next process.
            if stack.threadState == .blocked, wait.isOneCall,
                !functions.contains(where: { $0.contains(wait.function) })
            {
                withoutFunction.append(functions)
            }
        }
        let result = waiter.stop()
        print("\(wait): \(result.rounds) waits, \(taken) captures \(methods)")
        #expect(result.rounds > Self.rounds)
        #expect(result.early == 0, "\(wait): \(result.early) of \(result.rounds) waits ended early")
        #expect(result.failed == 0, "\(wait): \(result.failed) of \(result.rounds) waits failed")
        // A thread that moves on during every attempt to read it has no stack; that is rare.
        #expect(taken >= attempts * 9 / 10)
        #expect(incomplete.isEmpty, "\(wait): \(incomplete.count) incomplete stacks: \(Set(incomplete))")
        #expect(withoutFunction.isEmpty, "\(wait): \(withoutFunction.count) such as \(withoutFunction.first ?? [])")
    }
}

extension Result<CapturedStack, CaptureFailure> {
    /// Whether the thread got no CPU to stop on, or has not since a stop was asked for.
    fileprivate var isForLackOfCPU: Bool {
        guard case .failure(let failure) = self else { return false }
        return [.timedOut, .failed(errno: EBUSY)].contains(failure)
    }
}

private final class Waiter: Sendable {
    struct Result {
        var rounds = 0
        var early = 0
        var failed = 0
    }

    let thread: Int32
    var rounds: Int { shared.rounds.load(ordering: .relaxed) }
    private let shared: Shared

    private final class Shared: Sendable {
        let thread = Atomic<Int32>(0)
        let isStopping = Atomic<Bool>(false)
        let rounds = Atomic<Int>(0)
        let result = Mutex(Result())
        let started = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
    }

    init(_ wait: SwiftWait) {
        let shared = Shared()
        Thread.detachNewThread {
            Self.waitAgainAndAgain(wait, shared)
        }
        shared.started.wait()
        self.shared = shared
        thread = shared.thread.load(ordering: .acquiring)
    }

    func stop() -> Result {
        shared.isStopping.store(true, ordering: .releasing)
        let hasEnded = shared.ended.wait(timeout: .now() + 60) == .success
        return hasEnded ? shared.result.withLock { $0 } : Result(failed: 1)
    }

    @inline(never)
    private static func waitAgainAndAgain(_ wait: SwiftWait, _ shared: Shared) {
        // Set the signal mask: tests run on Dispatch threads, whose mask blocks nearly every signal.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        shared.thread.store(clinux_gettid(), ordering: .releasing)
        shared.started.signal()
        var result = Result()
        while !shared.isStopping.load(ordering: .acquiring) {
            let began = monotonicNow()
            if !wait() { result.failed += 1 }
            if monotonicNow() - began < UInt64(SwiftWait.milliseconds) * 1_000_000 { result.early += 1 }
            result.rounds += 1
            shared.rounds.store(result.rounds, ordering: .relaxed)
        }
        shared.result.withLock { $0 = result }
        shared.ended.signal()
    }
}

/// A wait of the standard libraries, 20 ms long.
enum SwiftWait: CaseIterable {
    case threadSleep
    case dispatchSemaphore
    case process

    static let milliseconds = 20

    var isOneCall: Bool { self != .process }

    var function: String {
        switch self {
        case .threadSleep: "sleepInFoundation"
        case .dispatchSemaphore: "waitForASemaphore"
        case .process: "waitForAProcess"
        }
    }

    func callAsFunction() -> Bool {
        switch self {
        case .threadSleep: sleepInFoundation()
        case .dispatchSemaphore: waitForASemaphore()
        case .process: waitForAProcess()
        }
    }
}

@inline(never)
private func sleepInFoundation() -> Bool {
    Thread.sleep(forTimeInterval: Double(SwiftWait.milliseconds) / 1000)
    return true
}

@inline(never)
private func waitForASemaphore() -> Bool {
    let semaphore = DispatchSemaphore(value: 0)
    return semaphore.wait(timeout: .now() + .milliseconds(SwiftWait.milliseconds)) == .timedOut
}

@inline(never)
private func waitForAProcess() -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sleep")
    process.arguments = ["\(Double(SwiftWait.milliseconds) / 1000)"]
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return !process.isRunning && process.terminationReason == .exit && process.terminationStatus == 0
}
