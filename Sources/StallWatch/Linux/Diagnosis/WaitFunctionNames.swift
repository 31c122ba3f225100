import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// Names the innermost functions of a stack that describe what a thread waits for, by their addresses in their
/// libraries, or in the executable if a library is linked into it.
///
/// The files are read once a process, on a ``JobThread``: it takes a few milliseconds, 450 ms for a debug build that
/// contains the standard library, and as long as a disk does not answer. Until then no function has a name.
final class WaitFunctionNames: Sendable {
    static let shared = WaitFunctionNames()

    /// The libraries whose functions wait on behalf of an app.
    static let libraries: Set<String> = ["libc.so.6", "libdispatch.so", "libstdc++.so.6"]
    /// Those whose files are read, too.
    static let known = libraries.union(["libFoundation.so"])
    /// `Foundation.Process.waitUntilExit()`, which runs a run loop.
    static let waitUntilExit = "$s10Foundation7ProcessC13waitUntilExityyF"
    /// The libraries that may be linked into the executable instead.
    static let linkable: Set<String> = ["libc.so.6", "libdispatch.so", "libswiftCore.so"]
    /// The number of innermost frames to name.
    ///
    /// A mutex's function is at most five out from the system call. A libdispatch semaphore's is nine: from glibc 2.41
    /// on, calls that can be cancelled have up to three more.
    static let innermost = 12
    /// The length of the longest function name to search in the executable, in bytes.
    private static let maximumNameBytes = 256

    struct Function: Equatable {
        /// The name that an app calls; `nil` for a function that only identifies its library.
        var name: String?
        var library: String
        var addresses: Range<UInt64>
    }

    /// By the path of an image that may contain such functions; empty until it is read.
    ///
    /// A child of fork(2) has no thread that reads them.
    private let functions = ProcessMutex<[String: [Function]]>([:])

    /// Posted when the last images are read; `nil` if nothing is left to wait for.
    private let reading = ProcessMutex<Semaphore?>(nil)

    private let thread: JobThread

    init(on thread: JobThread = .files) { self.thread = thread }

    /// Begins to read the functions of images that are new; ``settle(until:)`` waits for the end.
    func prepare(for images: ImageList) {
        let missing = Self.linkable.subtracting(images.images.map(\.name))
        let new = functions.withLock { functions in
            images.images.filter { image in
                guard Self.known.contains(image.name) || image.isExecutable && !missing.isEmpty,
                    functions[image.path] == nil
                else { return false }
                functions[image.path] = []
                return true
            }
        }
        guard !new.isEmpty else { return }
        // Without a thread, no function has a name.
        let hasRead = Semaphore()
        let begins = thread.add { [self] in
            for image in new { read(image, besides: missing) }
            hasRead.post()
        }
        if begins { reading.withLock { $0 = hasRead } }
    }

    /// Waits until the functions are read, or until a deadline in monotonic nanoseconds.
    func settle(until deadline: UInt64) { _ = reading.withLock { $0.take() }?.wait(until: deadline) }

    func read(_ image: LoadedImage, besides missing: Set<String>) {
        let found =
            if Self.known.contains(image.name) {
                (try? ELFFile.mapped(by: ImageIdentity(image)).functions { Self.isUsed(Self.name($0)) })?.map {
                    Function(name: Self.name($0.name), library: image.name, addresses: $0.addresses)
                }
            } else {
                Self.linkedFunctions(of: missing, inFileAt: OwnExecutable.file)
            }
        functions.withLock { $0[image.path] = found ?? [] }
    }

    func names(of frames: some Sequence<CapturedFrame>, in images: ImageList) -> [NamedFrame] {
        let functions = functions.withLock { $0 }
        return frames.prefix(Self.innermost).prefix { !$0.isUncertain }.map { frame in
            let address = frame.lookupAddress
            guard let image = images.image(at: address) else { return NamedFrame(function: nil, image: "") }
            let known = functions[image.path]
            let function = known?.first { $0.addresses.contains(address &- image.base) }
            return NamedFrame(
                function: function?.name, image: function?.library ?? image.name,
                isUnrecognizable: image.isExecutable && known?.isEmpty == true
            )
        }
    }

    /// Whether the frames, from the innermost outward, lead from `Process.waitUntilExit()` to the wait of its run loop.
    ///
    /// That is the 14th frame with glibc 2.41. What the loop has called is of another image, or is called by a callout.
    func isWaitUntilExit(_ frames: [CapturedFrame], in images: ImageList) -> Bool {
        let functions = functions.withLock { $0 }
        var inner: Set = ["libc.so.6"]
        for frame in frames.prefix(2 * Self.innermost).prefix(while: { !$0.isUncertain }) {
            let address = frame.lookupAddress
            guard let image = images.image(at: address) else { return false }
            inner.insert(image.name)
            let known = functions[image.path]?.first { $0.addresses.contains(address &- image.base) }?.name
            if let known, Self.isOfRunLoop(known) { return known == Self.waitUntilExit && inner.count <= 2 }
        }
        return false
    }

    private static func isOfRunLoop(_ symbol: String) -> Bool {
        symbol == waitUntilExit || name(symbol).hasPrefix("CFRUNLOOP_IS_")
    }

    /// The functions of libraries that are linked into an executable, those with a name that tells something first.
    static func linkedFunctions(of libraries: Set<String>, inFileAt path: String) -> [Function] {
        let hasLibc = libraries.contains("libc.so.6")
        let found = try? ELFFile(path: path).scanFunctions { bytes in
            guard isWorthDecoding(bytes) else { return false }
            let symbol = String(decoding: bytes, as: UTF8.self)
            return library(of: symbol) != nil || (hasLibc && isUsed(name(symbol)))
        }
        let functions = (found ?? []).compactMap { function -> Function? in
            let name = name(function.name)
            let library = library(of: function.name) ?? "libc.so.6"
            guard libraries.contains(library) else { return nil }
            return Function(name: isUsed(name) ? name : nil, library: library, addresses: function.addresses)
        }
        return functions.filter { $0.name != nil } + functions.filter { $0.name == nil }
    }

    private static func library(of symbol: String) -> String? {
        // Foundation is linked if the standard library is.
        if isOfRunLoop(symbol) { return "libswiftCore.so" }
        return switch RuntimeLibrary(symbol: symbol) {
        case .c: "libc.so.6"
        case .dispatch: "libdispatch.so"
        case .swift: "libswiftCore.so"
        case .cxx, .foundation, nil: nil
        }
    }

    /// Returns whether the name may belong to a library: most names in an executable are of Swift functions or C++ classes.
    private static func isWorthDecoding(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= maximumNameBytes, let first = bytes.first else { return false }
        if first == UInt8(ascii: "$") { return bytes.elementsEqual(waitUntilExit.utf8) }
        guard first == UInt8(ascii: "_"), bytes.count > 2, bytes[1] == UInt8(ascii: "Z") else { return true }
        return bytes.starts(with: "_ZN5swift".utf8) || bytes.starts(with: "_ZL".utf8)
    }

    private static func isUsed(_ function: String) -> Bool {
        LockFunction.isKnown(function) || SystemCall.waitsForData(function)
            || SystemCall.restarted(by: function) != nil || StreamFunction.names.contains(function)
            || LoaderLockFunctions.names.contains(function) || isOfRunLoop(function)
    }

    /// Returns the name that an app calls: libc itself calls the same function by a name with leading underscores.
    private static func name(_ symbol: String) -> String { String(symbol.drop { $0 == "_" }) }
}

struct LockFunction: Equatable {
    var kind: StallReport.LockKind
    var name: String

    init?(_ frame: NamedFrame) {
        guard let function = frame.function, let kind = Self.kinds[function] else { return nil }
        self.kind = kind
        name = function
    }

    /// Returns the function that the app called; a libdispatch semaphore waits in `sem_wait`, which is further in.
    static func outermost(of frames: [NamedFrame]) -> LockFunction? {
        let found = frames.compactMap(LockFunction.init)
        guard let first = found.first, first.kind == .semaphore else { return found.first }
        return found.first { $0.kind == .dispatchSemaphore } ?? semaphoreOfStrippedDispatch(frames) ?? first
    }

    /// Returns `dispatch_semaphore_wait` if functions of libdispatch without names wait for a semaphore of libc.
    static func semaphoreOfStrippedDispatch(_ frames: [NamedFrame]) -> LockFunction? {
        let caller = frames.first { $0.image != "libc.so.6" }
        guard caller == NamedFrame(function: nil, image: "libdispatch.so") else { return nil }
        return LockFunction(NamedFrame(function: "dispatch_semaphore_wait", image: "libdispatch.so"))
    }

    /// The function that other libraries than libc call futex(2) with.
    static let anyCall = "syscall"

    static func isKnown(_ function: String) -> Bool { function == anyCall || kinds[function] != nil }

    /// Exported functions of libc, and functions in the symbol table of libdispatch, by the kind of lock.
    private static let names: [StallReport.LockKind: [String]] = [
        .pthreadMutex: [
            "pthread_mutex_lock", "pthread_mutex_lock_full", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
        ],
        .condition: ["pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait"],
        .pthreadReadWriteLock: [
            "pthread_rwlock_rdlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_clockrdlock",
            "pthread_rwlock_wrlock", "pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock",
        ],
        .threadJoin: ["pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np"],
        .once: ["pthread_once", "call_once", "cxa_guard_acquire"],
        .semaphore: ["sem_wait", "sem_timedwait", "sem_clockwait"],
        .barrier: ["pthread_barrier_wait"],
        .dispatchOnce: ["dispatch_once", "dispatch_once_f", "dispatch_once_wait"],
        .dispatchSemaphore: [
            "dispatch_semaphore_wait", "dispatch_semaphore_wait_slow", "dispatch_sema4_wait",
            "dispatch_sema4_timedwait",
        ],
        .dispatchGroup: ["dispatch_group_wait", "dispatch_group_wait_slow"],
        .dispatchUnfairLock: ["dispatch_unfair_lock_lock_slow"],
    ]
    private static let kinds: [String: StallReport.LockKind] = names.reduce(into: [:]) { kinds, entry in
        for name in entry.value { kinds[name] = entry.key }
    }
}

enum StreamFunction {
    static let names: Set<String> = [
        "flockfile", "printf", "vprintf", "fprintf", "vfprintf", "dprintf", "puts", "fputs", "putc", "fputc", "putchar",
        "fwrite", "fflush", "perror", "psignal", "scanf", "fscanf", "vfscanf", "getc", "fgetc", "getchar", "fgets",
        "ungetc", "fread", "getline", "getdelim", "fseek", "fseeko", "ftell", "ftello", "rewind", "setvbuf", "fclose",
        "freopen", "clearerr", "feof", "ferror",
    ]

    /// Returns the function that the app called, for frames from the innermost outward; `nil` if it is not known.
    static func outermost(of frames: [NamedFrame]) -> String? {
        frames.compactMap(\.libcFunction).last(where: names.contains)
    }
}

/// The functions that lock the dynamic linker's list of libraries: all of the linker's own, and some of libc.
enum LoaderLockFunctions {
    /// Of glibc since 2.34, without leading underscores; dladdr(3) locks in `_dl_addr`.
    static let names: Set<String> = ["dl_iterate_phdr", "dl_addr", "dlsym", "dlvsym", "dlinfo"]

    /// Returns whether one of them waits for a mutex, for frames from the innermost outward.
    ///
    /// An initializer of a library runs inside the linker, too, but its own lock has its own function in between.
    static func isWaiting(in frames: [NamedFrame]) -> Bool {
        let caller = frames.first { $0.image != "libc.so.6" || names.contains($0.function ?? "") }
        return caller.map { $0.image == "libc.so.6" || $0.image.hasPrefix("ld-linux-") } ?? false
    }
}

struct NamedFrame: Equatable, Sendable {
    /// The name without leading underscores; `nil` for a function that does not describe a wait.
    var function: String?
    /// The file name of the image; for a library that is linked into the executable, the file name of the dynamic library.
    var image: String
    /// Whether the image may contain libraries, but has no symbols to recognize their functions.
    var isUnrecognizable = false

    var libcFunction: String? { image == "libc.so.6" ? function : nil }

    /// Returns the libc function that the innermost frames, those in libc, run for.
    ///
    /// From glibc 2.41 on, `fsync` and all other calls that can be cancelled run in `__syscall_cancel_arch`, up to
    /// three frames further in. It has no name, like all of glibc's own functions.
    static func calledFunctionOfLibc(in frames: [NamedFrame]) -> String? {
        frames.prefix { $0.image == "libc.so.6" }.lazy.compactMap(\.function).first
    }
}
