internal import StallReports

/// The memory of a context: the block of ``ContextPayload`` behind an object's header.
final class ContextStorage: ManagedBuffer<Int, UInt8> {
    /// Creates the memory of a payload; its header is the number of bytes in use.
    static func make(_ payload: ContextPayload) -> ContextStorage {
        let bytes = payload.bytes
        let buffer = Self.create(minimumCapacity: ContextPayload.byteCount) { _ in bytes.count }
        // A payload never exceeds the capacity. The rest of the block is not read.
        buffer.withUnsafeMutablePointerToElements { block in
            for (index, byte) in bytes.enumerated() { (block + index).initialize(to: byte) }
        }
        // `create` makes an object of the class that it is called on.
        return unsafeDowncast(buffer, to: ContextStorage.self)
    }

    /// The address of the block.
    var address: UInt64 {
        withUnsafeMutablePointerToElements { UInt64(UInt(bitPattern: $0)) }
    }

    /// The payload, decoded from the block.
    var payload: ContextPayload {
        let bytes = withUnsafeMutablePointers { Array(UnsafeBufferPointer(start: $1, count: $0.pointee)) }
        return ContextPayload(copied: bytes) ?? ContextPayload(label: "")
    }
}
