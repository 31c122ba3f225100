import CUnwindTestSupport
import Glibc
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// `nonisolated(unsafe)`: it is set before the child begins, and after its end.
nonisolated(unsafe) private var inheritedNames: (names: WaitFunctionNames, images: ImageList, frame: CapturedFrame)?

@Suite struct WaitFunctionNamesTests {
    private let images: ImageList
    private let names = WaitFunctionNames()

    init() throws {
        images = try ThreadCapture(engine: CUnwindEngine()).images()
        for image in images.images where WaitFunctionNames.known.contains(image.name) {
            names.read(image, besides: [])
        }
    }

    /// Returns the name of a frame in the middle of an exported function of the library.
    private func named(_ function: String, of library: String = "libc.so.6") throws -> NamedFrame? {
        // Use the library's function: a sanitizer has functions of the same names in the executable.
        let handle = try #require(dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
        defer { dlclose(handle) }
        let start = try #require(dlsym(handle, function))
        return names.names(of: [.init(address: UInt64(UInt(bitPattern: start)) + 1, isExact: true)], in: images).first
    }

    private static let waiting = [
        "pthread_mutex_lock", "pthread_cond_wait", "sem_wait", "fsync", "pread64", "syscall", "clock_nanosleep", "poll",
    ]

    @Test(
        arguments: waiting.map { ($0, "libc.so.6", $0) } + [
            ("dispatch_semaphore_wait", "libdispatch.so", "dispatch_semaphore_wait"),
            ("dispatch_group_wait", "libdispatch.so", "dispatch_group_wait"),
            // The initializer of a static variable in C++ waits there.
            ("__cxa_guard_acquire", "libstdc++.so.6", "cxa_guard_acquire"),
            ("strtol", "libc.so.6", nil), ("qsort", "libc.so.6", nil), ("getenv", "libc.so.6", nil),
        ] as [(String, String, String?)])
    func `functions that wait have their names`(function: String, library: String, name: String?) throws {
        let frame = try #require(try named(function, of: library))
        // Any name of the function is right: pread64 is also pread.
        let found = frame.function.map { $0 + "64" } == name ? name : frame.function
        #expect(found == name && frame.image == library)
        #expect(frame.libcFunction == (library == "libc.so.6" ? frame.function : nil))
    }

    private func frame(_ function: String, of library: String) throws -> CapturedFrame {
        let handle = try #require(dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
        defer { dlclose(handle) }
        let start = try #require(dlsym(handle, function))
        return CapturedFrame(address: UInt64(UInt(bitPattern: start)) + 1, isExact: true)
    }

    /// As of a file system that does not answer the parent's thread.
    @Test func `what is being read at a fork is read in the child`() throws {
        let (hasBegun, mayGoOn, files) = (Semaphore(), Semaphore(), JobThread(name: "files"))
        let names = WaitFunctionNames(on: files)
        inheritedNames = (names, images, try frame("sem_wait", of: "libc.so.6"))
        defer { inheritedNames = nil }
        files.add {
            hasBegun.post()
            mayGoOn.wait()
        }
        defer { mayGoOn.post() }
        hasBegun.wait()
        names.prepare(for: images)
        let status = cunwind_test_fork {
            guard let (names, images, frame) = inheritedNames else { _exit(6) }
            names.prepare(for: images)
            names.settle(until: monotonicNow() + 20_000_000_000)
            _exit(names.names(of: [frame], in: images).first?.function == "sem_wait" ? 7 : 8)
        }
        #expect(status == 7)
    }

    @Test(.enabled(if: dlopen("libFoundation.so", RTLD_NOLOAD | RTLD_LAZY) != nil))
    func `a wait until a process ends is that of a run loop`() throws {
        let foundation = "libFoundation.so"
        let (poll, run) = (try frame("ppoll", of: "libc.so.6"), try frame("CFRunLoopRunInMode", of: foundation))
        let wait = try frame(WaitFunctionNames.waitUntilExit, of: foundation)
        let queue = try frame("dispatch_sync", of: "libdispatch.so")
        let here = CapturedFrame(address: 0x10, isExact: true)
        #expect(names.isWaitUntilExit([poll, run, run, wait, here], in: images))
        #expect(!names.isWaitUntilExit([poll, run, run, here], in: images))
        #expect(!names.isWaitUntilExit([poll, queue, run, wait], in: images), "the loop has called a queue's block")
        #expect(!names.isWaitUntilExit([poll, here, run, wait], in: images))
        var guess = run
        guess.isUncertain = true
        #expect(!names.isWaitUntilExit([poll, guess, wait], in: images))
        let deep = [CapturedFrame](repeating: run, count: 2 * WaitFunctionNames.innermost)
        #expect(!names.isWaitUntilExit(deep + [wait], in: images))
    }

    @Test func `the run loop's functions of a linked Foundation are found in the executable`() throws {
        let directory = try TemporaryDirectory()
        let callout = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__"
        let symbols = [WaitFunctionNames.waitUntilExit, callout, "__CFRunLoopRun", "$s10Foundation7ProcessC3runyyKF"]
        let elf = SmallELF(symbols: symbols.enumerated().map { .init(name: $1, address: 0x1000 + UInt64($0) * 0x10) })
        let path = try directory.write("executable", elf.bytes)
        let found = WaitFunctionNames.linkedFunctions(of: ["libswiftCore.so"], inFileAt: path)
        #expect(found.map(\.name) == [WaitFunctionNames.waitUntilExit, String(callout.dropFirst(2))])
        #expect(WaitFunctionNames.linkedFunctions(of: ["libdispatch.so"], inFileAt: path) == [])
    }

    @Test func anAddressOutsideEveryImageHasNoName() {
        #expect(names.names(of: [.init(address: 0x10, isExact: true)], in: images) == [.init(function: nil, image: "")])
    }

    @Test func onlyTheInnermostFramesAreNamed() {
        let frames = [CapturedFrame](repeating: .init(address: 0x10, isExact: true), count: 100)
        #expect(names.names(of: frames, in: images).count == WaitFunctionNames.innermost)
    }

    /// From glibc 2.41 on, functions without names make the calls that can be cancelled.
    @Test func `the function of a call is found beyond glibc's helpers`() {
        func called(_ frames: [(String?, String)]) -> String? {
            NamedFrame.calledFunctionOfLibc(in: frames.map { NamedFrame(function: $0, image: $1) })
        }
        let helper: (String?, String) = (nil, "libc.so.6")
        #expect(called([helper, helper, helper, ("fsync", "libc.so.6"), (nil, "notes")]) == "fsync")
        #expect(called([("fsync", "libc.so.6"), (nil, "notes")]) == "fsync")
        #expect(called([helper, helper, (nil, "notes"), ("fsync", "libc.so.6")]) == nil)
        #expect(called([(nil, "notes"), ("fsync", "libc.so.6")]) == nil)
        #expect(called([]) == nil)
    }

    /// Libraries that are linked into the executable.
    @Test func `functions of linked libraries are found in the executable`() throws {
        let directory = try TemporaryDirectory()
        let symbols = [
            "_dispatch_group_wait_slow", "_dispatch_other", "$s5notes4saveyyF", "pthread_mutex_lock", "read",
            "_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_", "_ZN5notes3runEv", "save",
        ]
        let elf = SmallELF(symbols: symbols.enumerated().map { .init(name: $1, address: 0x1000 + UInt64($0) * 0x10) })
        let path = try directory.write("executable", elf.bytes)
        func found(_ libraries: Set<String>) -> [String: String?] {
            let functions = WaitFunctionNames.linkedFunctions(of: libraries, inFileAt: path)
            return Dictionary(
                uniqueKeysWithValues: functions.map { function in
                    ("\(function.library) \((function.addresses.lowerBound - 0x1000) / 0x10)", function.name)
                })
        }
        #expect(
            found(["libdispatch.so", "libswiftCore.so"]) == [
                "libdispatch.so 0": "dispatch_group_wait_slow", "libdispatch.so 1": nil, "libswiftCore.so 5": nil,
            ])
        #expect(found(["libc.so.6"]) == ["libc.so.6 3": "pthread_mutex_lock", "libc.so.6 4": "read"])
        #expect(found(["libdispatch.so"]).count == 2)
        #expect(WaitFunctionNames.linkedFunctions(of: WaitFunctionNames.linkable, inFileAt: "/dev/null").isEmpty)
    }
}

/// The kind of an awaited lock is the same whether the libraries are linked dynamically or into the executable.
@Suite struct LinkedLockKindTests {
    /// A wait as it was recorded in a static release build.
    struct Wait: Sendable {
        /// The functions of the executable that the stack has after those of libc.
        var symbols: [String]
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
        Wait(symbols: ["_ZN5swift14threading_impl9once_slowERNS0_6once_tEPFvPvES3_"], operation: 128 | 6, kind: .once),
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
        let word = Int32(bitPattern: 0x8000_0000 | 103)
        let identifier = LockIdentifier(memory: Block([word]), isLive: { $0 == 103 })
        #expect(identifier.identify(try futex(wait.operation), of: 100, in: frames)?.kind == wait.kind)
    }

    /// In a stripped libdispatch, as of Debian's package, only exported functions have names.
    @Test(
        arguments: [
            (["syscall"], UInt64(128), UInt32(0x8000_0000 | 103), AwaitedLock.Kind.dispatchOnce),
            (["syscall"], 128, 7, .futex),
            ([nil, "sem_wait"], 128 | 9, 0, .dispatchSemaphore),
        ] as [([String?], UInt64, UInt32, AwaitedLock.Kind)])
    func kindsAreFoundInAStrippedDispatch(
        libc: [String?], operation: UInt64, word: UInt32, kind: AwaitedLock.Kind
    ) throws {
        let frames =
            libc.map { NamedFrame(function: $0, image: "libc.so.6") }
            + [NamedFrame(function: nil, image: "libdispatch.so"), NamedFrame(function: nil, image: "notes")]
        let identifier = LockIdentifier(memory: Block([Int32(bitPattern: word)]), isLive: { $0 == 103 })
        #expect(identifier.identify(try futex(operation), of: 100, in: frames)?.kind == kind)
    }
}
