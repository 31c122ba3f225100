import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

/// The kind of an awaited lock is the same whether the libraries are linked dynamically or into the executable.
@Suite struct LinkedLockKindTests {
    /// One futex word.
    private struct Word: MemoryReading {
        var word: UInt32

        func bytes(at address: UInt64, count: Int) -> [UInt8]? {
            guard address == 0x1000, count == 4 else { return nil }
            return (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        }
    }

    /// A wait as it was recorded in a static release build.
    struct Wait: Sendable {
        /// The functions of the executable that the stack has after those of libc.
        var symbols: [String]
        /// The functions of libc.
        var libc: [String?] = ["syscall"]
        var operation: UInt64 = 128
        var kind: AwaitedLock.Kind
    }

    private static let waits = [
        Wait(symbols: ["_dispatch_wait_on_address", "_dispatch_group_wait_slow"], kind: .dispatchGroup),
        Wait(
            symbols: ["_dispatch_sema4_wait", "_dispatch_semaphore_wait_slow"], libc: [nil, "sem_wait"],
            operation: 128 | 9, kind: .dispatchSemaphore),
        Wait(
            symbols: ["_dispatch_sema4_timedwait", "_dispatch_semaphore_wait_slow"], libc: [nil, "sem_timedwait"],
            operation: 128 | 9, kind: .dispatchSemaphore),
        Wait(
            symbols: ["_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_"], operation: 128 | 6, kind: .once),
        Wait(
            symbols: ["_dispatch_futex_wait", "_dispatch_unfair_lock_lock_slow"], operation: 128 | 6,
            kind: .dispatchUnfairLock),
        Wait(symbols: ["$s15Synchronization6_MutexV4lockyyF"], operation: 128 | 6, kind: .swiftMutex),
    ]

    @Test(arguments: waits)
    func kindsMatchTheDynamicLibrary(wait: Wait) throws {
        let directory = try TemporaryDirectory()
        let elf = SmallELF(
            symbols: wait.symbols.enumerated().map { .init(name: $1, address: 0x1000 + UInt64($0) * 0x10) })
        let functions = WaitFunctionNames.linkedFunctions(
            of: ["libdispatch.so", "libswiftCore.so"], inFileAt: try directory.write("executable", elf.bytes))
        let linked = wait.symbols.indices.map { index in
            let function = functions.first { $0.addresses.contains(0x1000 + UInt64(index) * 0x10) }
            return NamedFrame(function: function?.name, image: function?.library ?? "executable")
        }
        let frames = wait.libc.map { NamedFrame(function: $0, image: "libc.so.6") } + linked
        let futex = try #require((0..<500).first { SystemCallNames.current.name($0) == "futex" })
        let call = SystemCall(
            number: futex, arguments: [0x1000, wait.operation, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
        let identifier = LockIdentifier(memory: Word(word: 0x8000_0000 | 103), isLive: { $0 == 103 })
        #expect(identifier.identify(call, of: 100, in: frames)?.kind == wait.kind)
    }
}
