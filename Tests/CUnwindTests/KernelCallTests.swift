import CLinux
import CUnwind
import CUnwindTestSupport
import Glibc
import TestSupport
import Testing

/// Captures of a thread that stays in the kernel, in one system call, for longer than the bound on a stop.
@Suite(.serialized, .needsPtrace) struct KernelCallTests {
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
        let call = try #require(cunwind_test_kernel_call_create())
        let length = cunwind_test_kernel_call_length(call), source = cunwind_test_kernel_call_source(call)
        let engine = try CaptureEngine(thread: cunwind_test_kernel_call_tid(call))
        cunwind_test_kernel_call_begin(call)
        #expect(engine.capture(by: .stopOrWait) == CUNWIND_PENDING)
        #expect(engine.capture(by: .stopOrWait) == CUNWIND_PENDING)
        #expect(!cunwind_test_kernel_call_is_over(call), "the call was too short")
        #expect(collect(engine) == CUNWIND_OK)
        #expect(engine.isComplete)
        #expect(engine.addresses.contains(where: cunwind_test_kernel_call_contains))
        // Held for as long as a stop that comes at once; a busy machine may take the helper's CPU away meanwhile.
        #expect(engine.info.held_nanoseconds < 50_000_000)
        #if arch(x86_64)
            #expect(engine.info.is_in_call)
            #expect(engine.info.system_call == 0)
            #expect(engine.info.arguments.0 == UInt64(source))
            #expect(withUnsafeBytes(of: engine.info.target) { $0.prefix(12).elementsEqual("/memfd:holes".utf8) })
        #endif
        #expect(engine.collect() == CUNWIND_NOT_PENDING)
        // The thread can be stopped again.
        #expect(engine.capture(by: .stop) == CUNWIND_OK)
        #expect(cunwind_test_kernel_call_finish(call) == length)
        #expect(children().isEmpty)
    }

    @Test func `another thread is captured while a stop is pending`() throws {
        let call = try #require(cunwind_test_kernel_call_create())
        let other = try #require(cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3))
        let length = cunwind_test_kernel_call_length(call)
        let engine = try CaptureEngine(thread: cunwind_test_kernel_call_tid(call))
        cunwind_test_kernel_call_begin(call)
        #expect(engine.capture(by: .stopOrWait) == CUNWIND_PENDING)
        #expect(engine.stop(cunwind_test_thread_tid(other)) == CUNWIND_OK)
        #expect(!cunwind_test_kernel_call_is_over(call), "the call was too short")
        #expect(collect(engine) == CUNWIND_OK)
        #expect(engine.addresses.contains(where: cunwind_test_kernel_call_contains))
        #expect(cunwind_test_thread_stop(other) > 0)
        #expect(cunwind_test_kernel_call_finish(call) == length)
        #expect(children().isEmpty)
    }

    @Test func `a canceled stop leaves the call and the thread alone`() throws {
        let call = try #require(cunwind_test_kernel_call_create())
        let length = cunwind_test_kernel_call_length(call), tid = cunwind_test_kernel_call_tid(call)
        let engine = try CaptureEngine(thread: tid)
        cunwind_test_kernel_call_begin(call)
        #expect(engine.capture(by: .stopOrWait) == CUNWIND_PENDING)
        engine.cancelStop(of: tid)
        #expect(engine.collect() == CUNWIND_NOT_PENDING)
        #expect(engine.capture(by: .stopOrWait) == CUNWIND_FAILED, "stopped twice at the same time")
        #expect(engine.info.error == EBUSY)
        #expect(!cunwind_test_kernel_call_is_over(call), "the call was too short")
        while !cunwind_test_kernel_call_is_over(call) { usleep(1_000) }
        usleep(10_000)
        #expect(!isStopped(tid))
        #expect(engine.capture(by: .stop) == CUNWIND_OK)
        #expect(cunwind_test_kernel_call_finish(call) == length)
        #expect(children().isEmpty)
    }

    @Test func `an engine that is destroyed takes its pending stop along`() throws {
        let call = try #require(cunwind_test_kernel_call_create())
        let length = cunwind_test_kernel_call_length(call), tid = cunwind_test_kernel_call_tid(call)
        var engine: CaptureEngine? = try CaptureEngine(thread: tid)
        cunwind_test_kernel_call_begin(call)
        #expect(engine?.capture(by: .stopOrWait) == CUNWIND_PENDING)
        engine = nil
        #expect(!cunwind_test_kernel_call_is_over(call), "the call was too short")
        #expect(children().isEmpty)
        while !cunwind_test_kernel_call_is_over(call) { usleep(1_000) }
        #expect(!isStopped(tid))
        #expect(cunwind_test_kernel_call_finish(call) == length)
    }
}
