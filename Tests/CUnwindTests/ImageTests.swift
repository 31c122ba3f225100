import CUnwind
import CUnwindTestSupport
import Foundation
import Glibc
import Testing

/// The list of images equals the dynamic linker's, and reading it takes no lock of the dynamic linker.
@Suite(.serialized) struct ImageTests {
    private let engine: OpaquePointer

    init() throws {
        engine = try #require(cunwind_test_engine(SIGURG))
    }

    @Test func `every linked image is listed`() {
        defer { cunwind_engine_destroy(engine) }
        var linked = 0
        #expect(cunwind_test_missing_images(engine, &linked) == 0)
        #expect(linked > 10)
        #expect(cunwind_engine_refresh_images(engine) == linked)
    }

    @Test func `a library is listed from dlopen to dlclose`() throws {
        defer { cunwind_engine_destroy(engine) }
        var counts = [cunwind_engine_refresh_images(engine)]
        var generations = [cunwind_engine_image_generation(engine)]
        // The test program does not use this library otherwise.
        let library = try #require(dlopen("libBrokenLocale.so.1", RTLD_NOW))
        counts.append(cunwind_engine_refresh_images(engine))
        generations.append(cunwind_engine_image_generation(engine))
        #expect(cunwind_engine_refresh_images(engine) == counts[1])
        #expect(cunwind_engine_image_generation(engine) == generations[1], "nothing changed")
        dlclose(library)
        counts.append(cunwind_engine_refresh_images(engine))
        generations.append(cunwind_engine_image_generation(engine))
        #expect(counts == [counts[0], counts[0] + 1, counts[0]])
        #expect(Set(generations).count == 3)
    }

    @Test func `a thread that holds the linker's lock delays nothing`() {
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_test_refreshes_beside_held_linker_lock(engine))
    }
    @Test func `an image with a truncated file is left out`() {
        cunwind_engine_destroy(engine)
        #expect(cunwind_test_cut_image() == 0)
    }
}

/// Memory can be read where process_vm_readv(2) is refused.
@Suite(.serialized) struct MemoryAccessTests {
    @Test(arguments: [CUNWIND_MEMORY_CALL, CUNWIND_MEMORY_FILE, CUNWIND_MEMORY_PIPE].map(\.rawValue))
    func `each access reads up to a missing page`(access: UInt32) {
        #expect(cunwind_test_memory_access(cunwind_memory_access(rawValue: access)) == 0)
    }

    /// The responses of Docker up to 20.10 and containerd up to 1.6, of kernels without the call, and of strict filters.
    @Test(arguments: [EPERM, ENOSYS, 0])
    func `a refused process_vm_readv leaves /proc/self/mem`(error: Int32) {
        #expect(cunwind_test_memory_without_call(error) == 0)
    }

    @Test(arguments: [EPERM, ENOSYS, 0])
    func `memory is read without an engine`(error: Int32) {
        let status = cunwind_test_run_without_vm_readv(error) {
            // After fork(2) in a process with threads: system calls only.
            var (word, copy) = (UInt64(0x5a5a), UInt64(0))
            let isRead = withUnsafePointer(to: &word) { word in
                cunwind_read_memory(UInt64(UInt(bitPattern: word)), &copy, 8)
            }
            return isRead && copy == 0x5a5a && !cunwind_read_memory(16, &copy, 8)
        }
        #expect(status == 1 << 8, "the child's exit status is 1")
    }

    @Test func `process_vm_readv is preferred where it works`() throws {
        let engine = try #require(cunwind_test_engine(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_memory_access_in_use() == CUNWIND_MEMORY_CALL)
    }
}

/// A read is valid only if the thread did not run during it.
@Suite(.serialized) struct ReadProofTests {
    @Test(arguments: [true, false])
    func `a valid read is never torn`(countsSlices: Bool) {
        let result = cunwind_test_read_proof(countsSlices, 3000)
        print("read proof: \(result)")
        #expect(result.counted_slices == countsSlices, "a kernel without CONFIG_SCHEDSTATS counts none")
        #expect(result.valid > 0)
        #expect(result.torn_valid == 0)
        // Without the check these reads would count as valid.
        #expect(result.torn_refused > 0)
    }
}

/// Captures where the kernel refuses ptrace, or the thread has ended.
@Suite(.serialized) struct RefusalTests {
    /// Service managers' filters kill by default, and the helper that they would kill shares the app's memory.
    @Test(arguments: [false, true])
    func withoutPtraceTheSignalTakesOver(kills: Bool) throws {
        var result = cunwind_test_refusal_result()
        try #require(cunwind_test_refusal(kills, &result))
        #expect(result.probe_status == Int32(CUNWIND_REFUSED.rawValue))
        #expect(result.probe_error == EPERM)
        #expect(result.stop_status == Int32(CUNWIND_REFUSED.rawValue))
        #expect(result.stop_error == EPERM)
        #expect(result.signal_status == Int32(CUNWIND_OK.rawValue))
        #expect(result.signal_is_complete)
        #expect(result.read_status == Int32(CUNWIND_OK.rawValue))
        #expect(result.read_is_complete)
    }

    /// The values of seccomp(2): KILL_PROCESS, KILL_THREAD, TRAP; and ERRNO with EPERM.
    @Test(arguments: [0x8000_0000, 0, 0x3_0000, 0x5_0001] as [UInt32], [true, false])
    func `a filter that kills is found out`(action: UInt32, sharesMemory: Bool) {
        var trials = cunwind_test_trials()
        #expect(cunwind_test_try_calls(action, sharesMemory, &trials) == 0)
        #expect(trials.is_tried)
        // The calls of the enumeration CUNWIND_CALL_READ_MEMORY, 0, and CUNWIND_CALL_QUEUE_SIGNAL, 3.
        #expect(trials.deadly == (action == 0x5_0001 ? 0 : 1 << 0 | 1 << 3))
        #expect(trials.other_calls == 0)
        // 64 MB are 16,384 pages: the app pays for a copy of them with a fault each.
        #expect(sharesMemory ? trials.faults < 100 : trials.faults > 16_000, "\(trials.faults) page faults")
        #expect(trials.is_known)
        #expect(trials.is_known_later, "a filter more is another answer")
    }

    /// As strace or a debugger does for a while.
    @Test func `a thread with a tracer is busy until the tracer is gone`() {
        var error: Int32 = 0, second: Int32 = -1
        #expect(cunwind_test_stop_of_traced(&error, &second) == Int32(CUNWIND_REFUSED.rawValue))
        #expect(error == EBUSY)
        #expect(second == Int32(CUNWIND_OK.rawValue))
    }

    @Test(.enabled(if: cunwind_test_may_choose_ids(), "needs CAP_CHECKPOINT_RESTORE"))
    func `a process with a reused thread id is not stopped`() {
        #expect(cunwind_test_stop_reused_id() == Int32(CUNWIND_NO_SUCH_THREAD.rawValue))
    }

    @Test func `a helper ends if its parent is gone`() {
        var status: Int32 = -1
        let took = cunwind_test_unnamed_helper(&status)
        #expect(status == Int32(CUNWIND_TIMED_OUT.rawValue))
        #expect(took >= UInt64(CUNWIND_STOP_TIMEOUT_NANOSECONDS))
        #expect(took < 10 * UInt64(CUNWIND_STOP_TIMEOUT_NANOSECONDS))
    }

    /// The app does not wait for this child, so without the engine it would stay a zombie.
    @Test(arguments: [false, true])
    func `a helper that ends late is reaped`(looksAgain: Bool) {
        #expect(cunwind_test_late_helper(looksAgain) == 0)
    }

    @Test func `a helper left to its thread is killed in time`() {
        #expect(cunwind_test_overdue_helper() == 0)
    }
}

/// The watchdog's thread asks for short slices.
@Suite struct SchedulingLatencyTests {
    private static var hasSlices: Bool {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        return (version.majorVersion, version.minorVersion) >= (6, 12)
    }

    @Test(.enabled(if: hasSlices, "needs Linux 6.12"))
    func `a short slice keeps policy and nice value`() {
        var before = cunwind_test_scheduling()
        var after = cunwind_test_scheduling()
        #expect(cunwind_test_short_slice(7, &before, &after))
        #expect(before.slice_nanoseconds > after.slice_nanoseconds)
        #expect(after.slice_nanoseconds == 500_000)
        #expect(after.nice == 7)
        #expect(after.policy == before.policy)
    }

    /// A service manager's filter for "@resources" covers this call, and its default action kills the process.
    @Test(arguments: [false, true])
    func `a filter against sched_setattr is survived`(kills: Bool) {
        #expect(cunwind_test_short_slice_under_filter(kills) == 0)
    }
}
