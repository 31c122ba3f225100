import Glibc
import Testing
import TestSupport

@testable import LinuxSupport

@Suite struct StandardStreamsTests {
    /// Memory of 64-bit words.
    private struct Words: MemoryReading {
        var words: [UInt64: UInt64]

        func bytes(at address: UInt64, count: Int) -> [UInt8]? {
            let bytes = (0..<UInt64(count)).map { offset -> UInt8? in
                words[(address + offset) & ~7].map { UInt8(truncatingIfNeeded: $0 >> ((address + offset) % 8 * 8)) }
            }
            return bytes.contains(nil) ? nil : bytes.compactMap(\.self)
        }
    }

    private let streams: StandardStreams

    init() throws {
        streams = StandardStreams(
            [("stdin", { 0 }), ("stdout", { 0x1000 })], lockOffset: 0x88,
            try #require(ThreadDescriptor(idOffset: 0x10, 0x10)))
    }

    @Test func `a stream is known by the address of its lock`() {
        let memory = Words(words: [0x1088: 0x2000])
        #expect(streams.name(ofLockAt: 0x2000, memory) == "stdout")
        #expect(streams.name(ofLockAt: 0x2008, memory) == nil)
        #expect(streams.name(ofLockAt: 0x2000, Words(words: [:])) == nil)
        // A program without stdin has no stream at address 0.
        #expect(streams.name(ofLockAt: 0, Words(words: [0x88: 0])) == nil)
    }

    @Test func `a contended lock names its owner's thread`() {
        let count: UInt64 = 1 << 32
        #expect(
            streams.owner(ofLockAt: 0x2000, Words(words: [0x2000: count | 2, 0x2008: 0x3000, 0x3010: 4711])) == 4711)
        // Nobody waits, it was just released, or the owner's memory is gone.
        #expect(
            streams.owner(ofLockAt: 0x2000, Words(words: [0x2000: count | 1, 0x2008: 0x3000, 0x3010: 4711])) == nil)
        #expect(streams.owner(ofLockAt: 0x2000, Words(words: [0x2000: 2, 0x2008: 0, 0x10: 4711])) == nil)
        #expect(streams.owner(ofLockAt: 0x2000, Words(words: [0x2000: count | 2, 0x2008: 0x3000])) == nil)
    }

    @Test func `this C library has the known layout`() throws {
        let current = try #require(StandardStreams.current)
        // Swift does not let tests use the variable.
        let variable = try #require(dlsym(nil, "stderr"))
        let stream = variable.load(as: UInt.self)
        // FILE's _lock of glibc on 64-bit machines.
        let lock = try #require(UnsafeRawPointer(bitPattern: stream + 136)).load(as: UInt64.self)
        #expect(current.name(ofLockAt: lock, GuardedReads()) == "stderr")
    }

    /// Memory of this process that is known to be mapped.
    private struct GuardedReads: MemoryReading {
        func bytes(at address: UInt64, count: Int) -> [UInt8]? {
            UnsafeRawPointer(bitPattern: UInt(address)).map { Array(UnsafeRawBufferPointer(start: $0, count: count)) }
        }
    }
}
