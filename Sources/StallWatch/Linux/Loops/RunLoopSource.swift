internal import CLinux
internal import CoreFoundation
internal import Foundation
import Glibc
import LinuxSupport
import StallReports
import StallSymbols
import Synchronization

/// Observes a CFRunLoop and turns its activities into turns.
///
/// The *begin* observer runs before every other observer and the *end* observer after every other one. The work of the
/// app's own observers is therefore part of the turn.
///
/// CFRunLoopAddObserver and CFRunLoopRemoveObserver wait for the run loop's lock, and CFRunLoop.c calls an app's
/// `retain` callbacks with this lock held. So a thread of the monitor's own calls them, in their order.
///
/// `@unchecked Sendable`: both may be called on any thread. No stored property changes after init.
final class RunLoopSource: LoopSource, @unchecked Sendable {
    let kind = LoopKind.runLoop
    private let runLoop: CFRunLoop
    private let namedModes: [String]
    /// The thread that watches the loop, if it runs the loop.
    private let ownThread: Int32?
    /// Whether the default mode is observed.
    let servesDefaultMode: Bool
    private var observers: [(CFRunLoopObserver, CFRunLoopMode)] = []
    /// Shared by the sources of a run loop: each of their changes waits for its lock.
    let changes: JobThread
    private let isRemoved = Atomic<Bool>(false)
    /// The number of changes that are not made yet, and a post for each that is.
    private let pending = Atomic<Int>(0)
    private let changed = LinuxSupport.Semaphore()

    /// Creates the observers, which retain `recorder`, and begins to add them to the loop; throws if memory is lacking.
    ///
    /// Of the modes, `kCFRunLoopCommonModes` means all present and future common modes. Reports can name the default
    /// mode and the modes given here, 255 at most.
    init(runLoop: CFRunLoop, modes: [String], recorder: TurnRecorder) throws(StallWatchError) {
        self.runLoop = runLoop
        changes = Self.thread(of: runLoop)
        ownThread = CFEqual(runLoop, CFRunLoopGetCurrent()) ? clinux_gettid() : nil
        // Here: the watchdog must never wait for the dynamic linker, nor read the executable.
        if Self.exportedRunFunction == nil || Self.exportedMethod == nil { Self.linkedFunctions.begin() }
        let common = kCFRunLoopCommonModes.map(Self.name)
        namedModes = Array(
            ([kCFRunLoopDefaultMode.map(Self.name) ?? ""] + modes)
                .reduce(into: [String]()) { if !$0.contains($1), $1 != common { $0.append($1) } }.prefix(255)
        )
        let standard = [kCFRunLoopDefaultMode, kCFRunLoopCommonModes].compactMap { $0.map(Self.name) }
        servesDefaultMode = modes.contains(where: standard.contains)
        let begin = try Self.observer([.entry, .beforeSources, .afterWaiting], order: .min, recorder) {
            _, activity, info in
            guard let recorder = RunLoopSource.recorder(info) else { return }
            switch activity {
            case .entry: recorder.enter(at: monotonicNow())
            case .afterWaiting: recorder.leaveWait(at: monotonicNow())
            default: recorder.reachSources(now: monotonicNow)
            }
        }
        let end = try Self.observer([.beforeWaiting, .exit], order: .max, recorder) { _, activity, info in
            guard let recorder = RunLoopSource.recorder(info) else { return }
            if activity == .beforeWaiting {
                recorder.enterWait(at: monotonicNow())
            } else {
                recorder.exit(at: monotonicNow())
            }
        }
        for mode in modes.map(Self.mode) { observers += [(begin, mode), (end, mode)] }
        for (index, name) in namedModes.enumerated() {
            observers.append((try Self.modeObserver(UInt8(index + 1), recorder), Self.mode(name)))
        }
        change { source in
            for (observer, mode) in source.observers { CFRunLoopAddObserver(source.runLoop, observer, mode) }
            // No observer saw the entry of a run that is in progress, and that run may last as long as the program.
            guard let mode = CFRunLoopCopyCurrentMode(source.runLoop),
                let index = source.namedModes.firstIndex(of: Self.name(mode))
            else { return }
            recorder.adoptMode(UInt8(index + 1))
        }
    }

    private struct Changes: Sendable { weak var thread: JobThread? }
    /// By the address of a run loop, which is not reused while a change waits: its source retains the loop.
    private static let threads = ProcessMutex<[UInt: Changes]>([:])

    private static func thread(of runLoop: CFRunLoop) -> JobThread {
        let address = UInt(bitPattern: Unmanaged.passUnretained(runLoop).toOpaque())
        return threads.withLock { threads -> JobThread in
            if let thread = threads[address]?.thread { return thread }
            threads = threads.filter { $0.value.thread != nil }
            let thread = JobThread(name: "stallwatch-loop")
            threads[address] = Changes(thread: thread)
            return thread
        }
    }

    private func change(_ body: @escaping @Sendable (RunLoopSource) -> Void) {
        pending.wrappingAdd(1, ordering: .relaxed)
        let change = { @Sendable [self] in
            body(self)
            pending.wrappingSubtract(1, ordering: .releasing)
            changed.post()
        }
        if !changes.add(change) { change() }
    }

    func settle(until deadline: UInt64) {
        while pending.load(ordering: .acquiring) > 0, changed.wait(until: deadline) {}
    }

    /// Begins to remove the observers from the run loop.
    ///
    /// They are removed and never invalidated. CFRunLoopObserverInvalidate releases the context at once, even if the
    /// loop's thread is about to call out with it: `__CFRunLoopDoObservers` retains the observer, but not its context.
    /// A removed observer releases its context with its last reference.
    func remove() {
        guard !isRemoved.exchange(true, ordering: .relaxed) else { return }
        change { source in
            for (observer, mode) in source.observers { CFRunLoopRemoveObserver(source.runLoop, observer, mode) }
        }
    }

    /// Returns a reader of what waits for the default mode, for one caller.
    func makeModeReader() -> RunLoopModeReader { RunLoopModeReader(runLoop) }

    // The main thread's id is the process's (gettid(2)).
    var knownThread: Int32? { isMain ? getpid() : ownThread }

    /// The address of the CFRunLoop, which this source retains.
    var address: UInt64 { UInt64(UInt(bitPattern: Unmanaged.passUnretained(runLoop).toOpaque())) }

    var isMain: Bool { CFEqual(runLoop, CFRunLoopGetMain()) }

    /// Returns whether the loop waits in any mode, observed or not; CFRunLoopIsWaiting takes no lock.
    func isWaitingUnobserved() -> Bool { CFRunLoopIsWaiting(runLoop) }

    /// `CFRunLoopRunSpecific`, which has one frame on the stack for each run of the thread's run loop.
    var runFunction: Range<UInt64> { Self.exportedRunFunction ?? Self.linked(Self.runFunctionName) }

    /// Foundation's `RunLoop.run(mode:before:)`, which asks whether the mode is empty before it calls ``runFunction``.
    var runMethod: Range<UInt64> { Self.exportedMethod ?? Self.linked(Self.methodName) }

    private static let runFunctionName = "CFRunLoopRunSpecific"
    private static let methodName = "$s10Foundation7RunLoopC3run4mode6beforeSbAC4ModeV_0A10Essentials4DateVtF"

    static let exportedRunFunction = exported(runFunctionName)
    private static let exportedMethod = exported(methodName)
    /// The function in a shared library; `nil` if no library exports it.
    static func exported(_ name: String) -> Range<UInt64>? {
        guard let function = dlsym(nil, name) else { return nil }
        let start = UInt64(UInt(bitPattern: function))
        return start..<(start + UInt64(clinux_function_size(function)))
    }

    /// The function in an executable that Foundation is linked into; empty without its symbol, and until that is read.
    private static func linked(_ name: String) -> Range<UInt64> { linkedFunctions.value?[name] ?? 0..<0 }

    /// Reading all symbols takes 10 ms, and a large executable's half a second.
    private static let linkedFunctions = Prepared<[String: Range<UInt64>]>(on: .files) {
        var base: UInt64 = 0
        let names = [runFunctionName, methodName]
        // In that case this code is part of the executable, too.
        guard clinux_executable_base(#dsohandle, &base),
            let functions = try? ELFFile(path: OwnExecutable.file).scanFunctions(where: { bytes in
                names.contains { bytes.elementsEqual($0.utf8) }
            })
        else { return [:] }
        return functions.reduce(into: [:]) { found, function in
            let addresses = function.addresses
            found[function.name] = addresses.lowerBound &+ base..<addresses.upperBound &+ base
        }
    }

    func modeName(_ index: UInt8) -> String? {
        index > 0 && Int(index) <= namedModes.count ? namedModes[Int(index) - 1] : nil
    }

    /// Creates an observer that is in one mode only, and reports it when a run begins: the loop does not pass its mode,
    /// and CFRunLoopCopyCurrentMode takes the loop's lock.
    private static func modeObserver(
        _ index: UInt8, _ recorder: TurnRecorder
    ) throws(StallWatchError) -> CFRunLoopObserver {
        // Runs second, after the begin observer, which makes room for the mode.
        let observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.entry.rawValue, true, .min + 1) {
            _, _ in recorder.setMode(index)
        }
        guard let observer else { throw Self.outOfMemory }
        return observer
    }

    private static let outOfMemory = StallWatchError(.systemFailure, "the run loop cannot be observed: out of memory")

    private static func observer(
        _ activities: CFRunLoopActivity, order: CFIndex, _ recorder: TurnRecorder,
        callout: CFRunLoopObserverCallBack
    ) throws(StallWatchError) -> CFRunLoopObserver {
        var context = CFRunLoopObserverContext(
            version: 0,
            info: Unmanaged.passUnretained(recorder).toOpaque(),
            retain: { $0.map { UnsafeRawPointer(Unmanaged<TurnRecorder>.fromOpaque($0).retain().toOpaque()) } },
            release: { info in
                guard let info else { return }
                Unmanaged<TurnRecorder>.fromOpaque(info).release()
            },
            copyDescription: nil
        )
        guard let observer = CFRunLoopObserverCreate(nil, activities.rawValue, true, order, callout, &context) else {
            throw outOfMemory
        }
        return observer
    }

    /// Returns the recorder of an observer's context, which retains it for as long as the observer exists.
    private static func recorder(_ info: UnsafeMutableRawPointer?) -> TurnRecorder? {
        info.map { Unmanaged<TurnRecorder>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func mode(_ name: String) -> CFRunLoopMode {
        // CFRunLoop.c compares these two modes by address.
        for known in [kCFRunLoopCommonModes, kCFRunLoopDefaultMode].compactMap({ $0 }) where Self.name(known) == name {
            return known
        }
        // Made from characters: on Linux a bridged Foundation string is not a CFString.
        return CFStringCreateWithCString(nil, name, CFStringBuiltInEncodings.UTF8.rawValue)
    }

    static func name(_ mode: CFRunLoopMode) -> String {
        let length = CFStringGetMaximumSizeForEncoding(
            CFStringGetLength(mode), CFStringBuiltInEncodings.UTF8.rawValue
        )
        var buffer = [CChar](repeating: 0, count: length + 1)
        guard CFStringGetCString(mode, &buffer, buffer.count, CFStringBuiltInEncodings.UTF8.rawValue) else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension RunLoop {
    /// Returns the CFRunLoop of this run loop, on any thread.
    ///
    /// Foundation for Linux has no public function for this (`getCFRunLoop` is internal). CoreFoundation gives the main
    /// thread's and the calling thread's CFRunLoop. For other threads, reflection finds the stored reference, and its
    /// type ID must be that of a CFRunLoop. A program that is built without reflection metadata gets an error.
    func coreFoundationRunLoop() throws(StallWatchError) -> CFRunLoop {
        if self === RunLoop.main, let main = CFRunLoopGetMain() { return main }
        if self === RunLoop.current, let current = CFRunLoopGetCurrent() { return current }
        let stored = Mirror(reflecting: self).descendant("_cfRunLoopStorage")
        if let object = stored.map({ $0 as AnyObject }), CFGetTypeID(object) == CFRunLoopGetTypeID() {
            // Safe: the type ID has just been checked. This is no downcast, because Swift on Linux does not know the
            // classes of CoreFoundation's types, and the check of a downcast ends a debug build.
            return Unmanaged<CFRunLoop>.fromOpaque(Unmanaged.passUnretained(object).toOpaque()).takeUnretainedValue()
        }
        throw StallWatchError(
            .systemFailure, "the run loop cannot be accessed from another thread: call watch(_:) on its own thread"
        )
    }
}
