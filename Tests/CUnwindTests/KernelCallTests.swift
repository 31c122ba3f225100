import CLinux
import CUnwind
import CUnwindTestSupport
import Glibc
import TestSupport
import Testing

/// Captures of a thread that stays in the kernel, in one system call, for longer than the bound on a stop.
@Suite(.serialized, .needsPtrace) struct KernelCallTests {
    /// The most calls for a stop that is pending.
    private static let maximumTries = 20
    /// The longest time for which a stop holds the thread, in nanoseconds, if its helper keeps its CPU meanwhile.
    private static let longestHold: UInt64 = 50_000_000

    /// A call that was still in progress when its thread had been asked to stop for as long as a stop may take.
    private struct PendingStop {
        let call: OpaquePointer
        let engine: CaptureEngine
        var thread: pid_t { cunwind_test_kernel_call_tid(call) }
        var length: Int { cunwind_test_kernel_call_length(call) }

        /// Waits for the end of call and thread, and expects that the call has moved all bytes.
        func finish() {
            let bytes = length
            #expect(cunwind_test_kernel_call_finish(call) == bytes)
        }
    }

    /// Makes calls until a stop is pending: one that is over first shows only that the test or a helper got no CPU.
    private func pendingStop() throws -> PendingStop {
        var pending: PendingStop?
        for _ in 0..<Self.maximumTries where pending == nil {
            let call = try #require(cunwind_test_kernel_call_create())
            let stop = PendingStop(call: call, engine: try CaptureEngine(thread: cunwind_test_kernel_call_tid(call)))
            cunwind_test_kernel_call_begin(call)
            let status = stop.engine.capture(by: .stopOrWait)
            if status == CUNWIND_PENDING {
                pending = stop
            } else {
                #expect(status == CUNWIND_OK || status == CUNWIND_TIMED_OUT)
                stop.finish()
            }
        }
        return try #require(pending, "each call was too short")
    }

    /// Waits at most 30 seconds.
    private func collect(_ engine: CaptureEngine) -> cunwind_status {
        var status = engine.collect()
        for _ in 0..<30_000 where status == CUNWIND_PENDING {
            usleep(1_000)
            status = engine.collect()
        }
        return status
    }

    private func children() -> [Substring] {
        var text = [CChar](repeating: 0, count: 4_096)
        guard let file = fopen("/proc/self/task/\(getpid())/children", "r") else { return [] }
        defer { fclose(file) }
        guard fgets(&text, Int32(text.count), file) != nil else { return [] }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            .split(separator: " ")
    }

    private func isStopped(_ tid: pid_t) -> Bool {
        guard let file = fopen("/proc/self/task/\(tid)/stat", "r") else { return false }
        defer { fclose(file) }
        var text = [CChar](repeating: 0, count: 256)
        guard fgets(&text, Int32(text.count), file) != nil else { return false }
        let line = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return line.contains(") t ") || line.contains(") T ")
    }

    @Test func `a pending stop gives the stack of the call`() throws {
        var held = UInt64.max
        for _ in 0..<Self.maximumTries where held >= Self.longestHold {
            let stop = try pendingStop()
            let (engine, source) = (stop.engine, cunwind_test_kernel_call_source(stop.call))
            #expect(engine.capture(by: .stopOrWait) == CUNWIND_PENDING)
            #expect(collect(engine) == CUNWIND_OK)
            #expect(engine.isComplete)
            #expect(engine.addresses.contains(where: cunwind_test_kernel_call_contains))
            held = min(held, engine.info.held_nanoseconds)
            #if arch(x86_64)
                #expect(engine.info.is_in_call)
                #expect(engine.info.system_call == 0)
                #expect(engine.info.arguments.0 == UInt64(source))
                #expect(withUnsafeBytes(of: engine.info.target) { $0.prefix(12).elementsEqual("/memfd:holes".utf8) })
            #endif
            #expect(engine.collect() == CUNWIND_NOT_PENDING)
            // The thread can be stopped again.
            #expect(engine.capture(by: .stop) == CUNWIND_OK)
            stop.finish()
            #expect(children().isEmpty)
        }
        // Held for as long as a stop that comes at once; a busy machine may take the helper's CPU away meanwhile.
        #expect(held < Self.longestHold)
    }

    @Test func `another thread is captured while a stop is pending`() throws {
        let other = try #require(cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3))
        let stop = try pendingStop()
        #expect(stop.engine.stop(cunwind_test_thread_tid(other)) == CUNWIND_OK)
        #expect(collect(stop.engine) == CUNWIND_OK)
        #expect(stop.engine.addresses.contains(where: cunwind_test_kernel_call_contains))
        #expect(cunwind_test_thread_stop(other) > 0)
        stop.finish()
        #expect(children().isEmpty)
    }

    @Test func `a canceled stop leaves the call and the thread alone`() throws {
        var isRefused = false
        for _ in 0..<Self.maximumTries where !isRefused {
            let stop = try pendingStop()
            stop.engine.cancelStop(of: stop.thread)
            #expect(stop.engine.collect() == CUNWIND_NOT_PENDING)
            let status = stop.engine.capture(by: .stopOrWait)
            isRefused = status == CUNWIND_FAILED && stop.engine.info.error == EBUSY
            // The call was over, and the thread is asked a second time.
            if !isRefused { _ = collect(stop.engine) }
            while !cunwind_test_kernel_call_is_over(stop.call) { usleep(1_000) }
            usleep(10_000)
            #expect(!isStopped(stop.thread))
            // Once the helper of the canceled stop has ended.
            #expect(eventually { stop.engine.capture(by: .stop) == CUNWIND_OK })
            stop.finish()
            #expect(children().isEmpty)
        }
        #expect(isRefused, "stopped twice at the same time")
    }

    @Test func `an engine that is destroyed takes its pending stop along`() throws {
        var wasInCall = false
        for _ in 0..<Self.maximumTries where !wasInCall {
            // Without its engine.
            let call = try pendingStop().call
            wasInCall = !cunwind_test_kernel_call_is_over(call)
            let length = cunwind_test_kernel_call_length(call), tid = cunwind_test_kernel_call_tid(call)
            #expect(children().isEmpty)
            while !cunwind_test_kernel_call_is_over(call) { usleep(1_000) }
            #expect(!isStopped(tid))
            #expect(cunwind_test_kernel_call_finish(call) == length)
        }
        #expect(wasInCall, "the engine waits for the call")
    }
}
