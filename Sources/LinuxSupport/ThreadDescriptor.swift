internal import CLinux

/// Where the C library keeps the kernel's id of a thread, and the word by which it learns of the thread's end.
///
/// Both are offsets behind pthread_self(3), found in the descriptor of the thread that asks first. Up to glibc 2.41 they
/// are the same: the kernel clears the id. glibc 2.43 has a state there, which is 2 for a thread that can be joined.
package struct ThreadDescriptor: Sendable {
    /// The values that are a state and no thread's id, where the descriptor is not known.
    private static let states: ClosedRange<Int32> = 0...3

    let idOffset: UInt64
    private let endOffset: UInt64

    /// The layout in this process; `nil` if it is not known.
    package static let current = ThreadDescriptor(idOffset: clinux_thread_id_offset(), clinux_thread_end_offset())

    /// Creates a layout; `nil` if one of the offsets is 0, for an unknown one.
    package init?(idOffset: UInt64, _ endOffset: UInt64) {
        guard idOffset > 0, endOffset > 0 else { return nil }
        (self.idOffset, self.endOffset) = (idOffset, endOffset)
    }

    /// Returns the thread for whose end another one waits at an address, where `word` is; `nil` if it is not known.
    package static func thread(
        endingAt address: UInt64, word: Int32, _ layout: ThreadDescriptor?, _ memory: any MemoryReading
    ) -> Int32? {
        guard let layout else { return states ~= word ? nil : word }
        return memory.integer(at: address &- layout.endOffset &+ layout.idOffset)
    }
}
