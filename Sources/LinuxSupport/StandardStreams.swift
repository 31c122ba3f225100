internal import CLinux

/// The locks of stdin, stdout and stderr, in glibc's layout, if a private stream locked by the caller shows it.
package struct StandardStreams: Sendable {
    /// The offset of a lock's owner (glibc's _IO_lock_t: an int, an int, a pointer).
    static let ownerOffset: UInt64 = 8
    /// The word of a lock with waiting threads (glibc's lowlevellock.h).
    static let contended: Int32 = 2

    let streams: [(name: String, address: @Sendable () -> UInt64)]
    let lockOffset: UInt64
    let threads: ThreadDescriptor

    /// The streams of this process; `nil` if the layout is another one.
    package static let current: StandardStreams? = {
        guard let threads = ThreadDescriptor.current, clinux_knows_stream_locks() else { return nil }
        let names = ["stdin", "stdout", "stderr"]
        return StandardStreams(
            streams: names.enumerated().map { number, name in (name, { clinux_stream(Int32(number)) }) },
            lockOffset: clinux_stream_lock_offset(), threads: threads)
    }()

    /// Returns the name of the stream whose lock is at an address; `nil` if it is none of these.
    package func name(ofLockAt address: UInt64, _ memory: any MemoryReading) -> String? {
        streams.first { stream in
            let stream = stream.address()
            return stream != 0 && memory.word(at: stream &+ lockOffset) == address
        }?.name
    }

    /// Returns the thread that holds a stream's lock while others wait for it; `nil` if it was just released.
    package func owner(ofLockAt address: UInt64, _ memory: any MemoryReading) -> Int32? {
        guard memory.integer(at: address) == Self.contended,
            let owner = memory.word(at: address &+ Self.ownerOffset), owner != 0
        else { return nil }
        return memory.integer(at: owner &+ threads.idOffset)
    }
}

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
