import CUnwind
import CUnwindTestSupport
import Glibc
import Testing

/// Memory is read as well where process_vm_readv(2) is refused.
@Suite(.serialized) struct MemoryAccessTests {
    @Test(arguments: [CUNWIND_MEMORY_CALL, CUNWIND_MEMORY_FILE, CUNWIND_MEMORY_PIPE].map(\.rawValue))
    func `each access reads up to a missing page`(access: UInt32) {
        #expect(cunwind_test_memory_access(cunwind_memory_access(rawValue: access)) == 0)
    }

    /// What Docker up to 20.10 and containerd up to 1.6 answer, kernels without the call, and strict service managers.
    @Test(arguments: [EPERM, ENOSYS, 0])
    func `a refused process_vm_readv leaves /proc/self/mem`(error: Int32) {
        #expect(cunwind_test_memory_without_call(error) == 0)
    }

    @Test func `process_vm_readv is preferred where it works`() throws {
        let engine = try #require(cunwind_engine_create(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_engine_memory_access(engine) == CUNWIND_MEMORY_CALL)
    }
}
