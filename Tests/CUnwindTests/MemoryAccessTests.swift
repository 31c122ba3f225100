import CUnwind
import CUnwindTestSupport
import Glibc
import Testing

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
        let engine = try #require(cunwind_engine_create(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_engine_memory_access(engine) == CUNWIND_MEMORY_CALL)
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
