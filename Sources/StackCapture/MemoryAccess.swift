/// The way in which the engine reads memory that may not be mapped.
package enum MemoryAccess: Sendable, Equatable {
    /// process_vm_readv(2).
    case call
    /// /proc/self/mem.
    case file
    /// A pipe, through which the kernel copies.
    case pipe
}
