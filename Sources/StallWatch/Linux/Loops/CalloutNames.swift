internal import CLinux
internal import CoreFoundation
import Glibc
import LinuxSupport
import StackCapture
import StallSymbols

/// The names of the functions through which a CFRunLoop calls out, for a CoreFoundation without `.symtab`.
///
/// The functions are not exported, so a stripped library, as in Debian's package, does not name them. Each makes one
/// call, so its return address tells it: a loop on a private thread calls out in each way once, and its callbacks note them.
struct CalloutNames: Sendable {
    /// By the return addresses of their calls.
    var names: [UInt64: String] = [:]
    /// libdispatch's exported function that runs the main queue: it returns to the callout.
    var mainQueueFunction: Range<UInt64> = 0..<0

    static var learned: CalloutNames { state.withLock { $0 } }
    private static let state = ProcessMutex(CalloutNames())

    private static let mainQueue = "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__"
    private static let observer = "__CFRUNLOOP_IS_CALLING_OUT_TO_AN_OBSERVER_CALLBACK_FUNCTION__"
    private static let timer = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__"
    private static let source0 = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE0_PERFORM_FUNCTION__"
    private static let source1 = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_SOURCE1_PERFORM_FUNCTION__"
    private static let block = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__"

    /// The symbol of a frame's function if it has called that of the frame `callee` as a callout; else `nil`.
    func name(of frame: CapturedFrame, calling callee: CapturedFrame) -> String? {
        guard frame.kind == .code, !names.isEmpty else { return nil }
        return names[frame.address]
            ?? (callee.kind == .code && mainQueueFunction.contains(callee.lookupAddress) ? Self.mainQueue : nil)
    }

    /// Learns the names once if the symbols of CoreFoundation lack them, and returns those that are missing nevertheless.
    ///
    /// Takes the dynamic linker's lock, and about half a millisecond, on a thread that has no run loop and ends soon: the
    /// loop ends with the thread.
    static func learn() -> [String] {
        guard learned.names.isEmpty, isStripped else { return [] }
        let found = calledOut()
        state.withLock { $0 = found }
        let all = [observer, timer, source0, source1, block]
        return all.filter { !found.names.values.contains($0) } + (found.mainQueueFunction.isEmpty ? [mainQueue] : [])
    }

    /// Whether the file with the run loop's functions has no `.symtab`.
    private static let isStripped: Bool = {
        let function = RunLoopSource.exportedRunFunction.flatMap { UnsafeRawPointer(bitPattern: UInt($0.lowerBound)) }
        let path = function.flatMap(clinux_image_path).map(pathText(cString:)) ?? OwnExecutable.file
        return (try? ELFFile(path: path))?.hasSymbolTable == false
    }()

    /// The most runs of the loop; it calls out in each way in the first or second.
    private static let maximumRuns = 8
    /// The longest time that a run waits, in seconds.
    private static let longestRun = 0.01

    private static func calledOut() -> CalloutNames {
        let mode = CFStringCreateWithCString(nil, "stallwatch", CFStringBuiltInEncodings.UTF8.rawValue)
        guard let loop = RunLoopLayout.makePrivateLoop(), let mode else { return CalloutNames() }
        // The callbacks' return addresses; the fifth word is the descriptor of the source of version 1.
        let notes = UnsafeMutablePointer<UInt64>.allocate(capacity: 5)
        notes.initialize(repeating: 0, count: 5)
        defer { notes.deallocate() }

        typealias Noting = @convention(c) (UnsafeRawPointer?, UnsafeMutableRawPointer?) -> Void
        typealias NotingActivity = @convention(c) (UnsafeRawPointer?, UInt, UnsafeMutableRawPointer?) -> Void
        // Only the pointers' types differ, so the calls are the same. Callbacks wrapped in Swift would return to Swift.
        let timerCallback = unsafeBitCast(clinux_note_timer as Noting, to: CFRunLoopTimerCallBack.self)
        let observerCallback = unsafeBitCast(clinux_note_observer as NotingActivity, to: CFRunLoopObserverCallBack.self)
        var observerContext = CFRunLoopObserverContext()
        observerContext.info = UnsafeMutableRawPointer(notes)
        let entry = CFRunLoopObserverCreate(
            nil, CFRunLoopActivity.entry.rawValue, true, 0, observerCallback, &observerContext)
        var timerContext = CFRunLoopTimerContext()
        timerContext.info = UnsafeMutableRawPointer(notes + 1)
        let due = CFRunLoopTimerCreate(nil, 0, 0, 0, 0, timerCallback, &timerContext)
        var context0 = CFRunLoopSourceContext()
        (context0.info, context0.perform) = (UnsafeMutableRawPointer(notes + 2), clinux_note_source)
        let signaled = CFRunLoopSourceCreate(nil, 0, &context0)
        let ready = readyDescriptors()
        defer { for descriptor in ready { descriptor.close() } }
        notes[4] = UInt64(bitPattern: Int64(ready.first?.number ?? -1))
        let source1 = ready.isEmpty ? nil : portSource(notes + 3)

        if let entry { CFRunLoopAddObserver(loop, entry, mode) }
        if let due { CFRunLoopAddTimer(loop, due, mode) }
        for source in [signaled, source1].compactMap({ $0 }) { CFRunLoopAddSource(loop, source, mode) }
        if let signaled { CFRunLoopSourceSignal(signaled) }
        let block = clinux_perform_noting_block(
            Unmanaged.passUnretained(loop).toOpaque(), Unmanaged.passUnretained(mode).toOpaque())
        var found = CalloutNames()
        for _ in 0..<maximumRuns where found.names.count < 5 {
            CFRunLoopRunInMode(mode, longestRun, true)
            let addresses = [
                (notes[0], observer), (notes[1], timer), (notes[2], source0), (notes[3], Self.source1),
                (block.pointee, Self.block),
            ]
            for (address, name) in addresses where address != 0 { found.names[address] = name }
        }
        if let entry { CFRunLoopObserverInvalidate(entry) }
        if let due { CFRunLoopTimerInvalidate(due) }
        for source in [signaled, source1].compactMap({ $0 }) { CFRunLoopSourceInvalidate(source) }
        found.mainQueueFunction = RunLoopSource.exported("_dispatch_main_queue_callback_4CF") ?? 0..<0
        return found
    }

    /// Returns a source that notes its callback's return address, and has the descriptor in the word after it.
    private static func portSource(_ note: UnsafeMutablePointer<UInt64>) -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        (context.version, context.info, context.perform) = (1, UnsafeMutableRawPointer(note), clinux_note_source)
        context.getPort = { $0.map { $0.load(fromByteOffset: 8, as: Int32.self) } ?? -1 }
        return withUnsafeMutablePointer(to: &context) { context in
            // CFRunLoopSourceCreate reads the version first and then takes the context for one of version 1.
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
    }

    /// Returns a descriptor that can be read, and its peer; empty if the system refuses them.
    private static func readyDescriptors() -> [KeptDescriptor] {
        var pair: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else { return [] }
        // What cannot be written shows as an address that is missing.
        _ = write(pair[1], [1 as UInt8], 1)
        return pair.map { KeptDescriptor($0) }
    }
}
