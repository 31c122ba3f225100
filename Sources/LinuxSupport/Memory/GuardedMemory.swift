internal import CLinux

/// Reads memory through the kernel, for which an unmapped address is an error, not a signal.
package struct GuardedMemory: MemoryReading {
    package init() {}

    package func bytes(at address: UInt64, count: Int) -> [UInt8]? {
        guard count > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        return clinux_read_memory(address, &bytes, count) ? bytes : nil
    }
}
