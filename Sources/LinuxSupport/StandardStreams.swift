internal import CLinux

/// The locks of the streams stdin, stdout and stderr, which threads wait for while another one prints or reads.
///
/// The layout is glibc's. It is used only if a private stream, locked by the calling thread, shows it.
package struct StandardStreams: Sendable {
    /// The offset of a lock's owner (glibc's _IO_lock_t: an int, an int, a pointer).
    static let ownerOffset: UInt64 = 8
    /// The word of a lock with waiting threads (glibc's lowlevellock.h).
    static let contended: Int32 = 2

    private let streams: [(name: String, address: @Sendable () -> UInt64)]
    private let lockOffset: UInt64
    private let threads: ThreadDescriptor

    /// The streams of this process; `nil` if the layout is another one.
    package static let current = StandardStreams()

    private init?() {
        guard let threads = ThreadDescriptor.current, clinux_knows_stream_locks() else { return nil }
        let names = ["stdin", "stdout", "stderr"]
        self.init(
            names.enumerated().map { number, name in (name, { clinux_stream(Int32(number)) }) },
            lockOffset: clinux_stream_lock_offset(), threads)
    }

    /// Creates streams of which the layout is known.
    init(
        _ streams: [(name: String, address: @Sendable () -> UInt64)], lockOffset: UInt64, _ threads: ThreadDescriptor
    ) {
        (self.streams, self.lockOffset, self.threads) = (streams, lockOffset, threads)
    }

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
