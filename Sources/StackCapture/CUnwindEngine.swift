internal import CUnwind
import Glibc
package import LinuxSupport
package import StallReports

/// Not thread-safe: only the watchdog uses it.
package final class CUnwindEngine: CaptureEngine {
    let engine: OpaquePointer
    /// The result of the last unwind, reused because about 500 frames are too large for a stack.
    private let stack: UnsafeMutablePointer<cunwind_stack>
    private let asyncCallers: UnsafeMutablePointer<cunwind_async_callers>
    private var imageList = ImageList()
    private var imageGeneration: UInt64 = 0
    private let executable = OwnExecutable.path
    package let unwinder: Unwinder
    package private(set) var stopRefusal: Int32?

    /// The readings of a clock, a millisecond apart, after which a thread counts as blocked: a busy one may be without a CPU.
    private static let maximumClockReadings = 5

    /// The signal for captures where ptrace is refused, of threads that block ``harmlessSignal``: the only one without an
    /// error that Dispatch's worker threads do not block.
    static let defaultSignal = SIGPROF
    /// The signal for all other threads: ignored by default, while a pending SIGPROF ends what execve(2) starts.
    private static let harmlessSignal = SIGURG

    package init() throws(SystemError) {
        var options = cunwind_options()
        options.signal_number = Self.defaultSignal
        options.harmless_signal_number = Self.harmlessSignal
        guard let engine = cunwind_engine_create(&options) else {
            throw SystemError("the capture engine cannot be created", errno: errno)
        }
        self.engine = engine
        let unwinder = cunwind_engine_unwinder(engine)
        self.unwinder = Unwinder(
            name: String(cString: unwinder.name), reason: unwinder.reason.map { String(cString: $0) })
        stack = Self.zeroed()
        asyncCallers = Self.zeroed()
    }

    /// Creates a C structure, whose initializer would take its size several times on the caller's stack in a debug build.
    private static func zeroed<Structure: BitwiseCopyable>() -> UnsafeMutablePointer<Structure> {
        let structure = UnsafeMutablePointer<Structure>.allocate(capacity: 1)
        memset(structure, 0, MemoryLayout<Structure>.size)
        return structure
    }

    deinit {
        cunwind_engine_destroy(engine)
        stack.deallocate()
        asyncCallers.deallocate()
    }

    /// Asks the kernel, if it can, to run the capturing thread soon after it wakes, also on a busy CPU.
    package static func requestShortSlice() {
        _ = cunwind_request_short_slice()
    }

    /// Does something that may make a thread of the app: that one inherits how the kernel runs the calling thread.
    package static func makingThreads(_ body: () -> Void) {
        cunwind_suspend_short_slice(true)
        defer { cunwind_suspend_short_slice(false) }
        body()
    }

    /// Returns whether a debugger traces a thread of this process, and not the helper of a capture.
    package static func isDebugged(thread: Int32) -> Bool {
        let tracer = cunwind_tracer(thread)
        return tracer != 0 && !cunwind_is_stop_helper(tracer)
    }

    /// Whether memory that may not be mapped is read by process_vm_readv(2), or in which other way.
    static var memoryReading: Capabilities.Outcome {
        switch cunwind_memory_access_in_use() {
        case CUNWIND_MEMORY_FILE: .missing("memory is read through /proc/self/mem")
        case CUNWIND_MEMORY_PIPE: .missing("memory is read through a pipe")
        default: .works()
        }
    }

    package func probeStop() -> Bool {
        // Only a refusal by the system counts. On a busy machine the probe may time out; using signals because of that
        // would interrupt the app's calls needlessly (measured: 9 of 86 calls of poll).
        stopRefusal = try? ProbedThread.run(isWaiting: true, isSettled: false) { thread -> Int32? in
            var error: Int32 = 0
            let isRefused = cunwind_engine_probe_stop(engine, thread, &error) == CUNWIND_REFUSED && error != EBUSY
            return isRefused ? error : nil
        }
        return stopRefusal == nil
    }

    package func read(_ probe: ThreadProbe) throws(CaptureFailure) -> ThreadReading {
        guard let reading = probe.read() else { throw .noSuchThread }
        return reading
    }

    package func status(of probe: ThreadProbe, at reading: ThreadReading) -> ThreadStatus {
        let isUninterruptible = reading.state == UInt8(ascii: "D")
        let state = isUninterruptible ? StallReport.ThreadState.uninterruptible : .blocked
        switch reading.shown {
        case .running?, .blocked?: return ThreadStatus(state: .running)
        case .faulting?: return ThreadStatus(state: state)
        case .waiting(let call)?:
            return ThreadStatus(
                state: state, systemCall: call.number,
                isInterruptedByStop: cunwind_call_is_interrupted_by_stop(
                    Int64(call.number), Self.isSocket(call.argument(0))))
        case nil:
            // Without /proc, only the thread's clock shows whether it runs. A stop could interrupt a waiting call.
            if reading.state == 0 {
                return Self.isRunning(probe.thread)
                    ? ThreadStatus(state: .running)
                    : ThreadStatus(state: .blocked, isInterruptedByStop: true, isOpaque: true)
            }
            guard isUninterruptible || reading.state == UInt8(ascii: "S") else { return ThreadStatus(state: .running) }
            let restarts = cunwind_wait_restarts_after_stop(reading.waitChannel ?? "")
            return ThreadStatus(state: state, isInterruptedByStop: !restarts, isOpaque: true)
        }
    }

    /// Returns whether a thread's CPU clock runs; waits for that for some milliseconds.
    private static func isRunning(_ thread: Int32) -> Bool {
        let first = cpuTime(of: thread)
        return (0..<maximumClockReadings).contains { _ in
            usleep(1_000)
            return cpuTime(of: thread) != first
        }
    }

    package func capture(
        _ probe: ThreadProbe, at reading: ThreadReading, by method: StallReport.CaptureMethod
    ) throws(CaptureFailure) -> CapturedStack {
        var isAsInspected = false
        var captured = try result(of: probe, method) { info in
            switch method {
            case .read:
                let status = cunwind_capture_read(engine, probe.handle, stack, &info)
                isAsInspected = info.is_as_inspected
                return status
            case .signal: return cunwind_capture_signal(engine, probe.handle, stack, &info)
            default: return cunwind_capture_stop(engine, probe.handle, stack, &info)
            }
        }
        captured.reading = isAsInspected ? reading : nil
        return captured
    }

    package func stopOrWait(_ probe: ThreadProbe) throws(CaptureFailure) -> CapturedStack {
        try result(of: probe, .ptrace) { cunwind_capture_stop_pending(engine, probe.handle, stack, &$0) }
    }

    package func collectStop(of probe: ThreadProbe) throws(CaptureFailure) -> CapturedStack {
        do throws(CaptureFailure) {
            return try result(of: probe, .ptrace, hasReturned: true) {
                cunwind_collect_stop(engine, probe.handle, stack, &$0)
            }
        } catch {
            // The thread is gone. If the result stayed, the next thread with its id would get it.
            if !error.isPending { cancelStop(of: probe.thread) }
            throw error
        }
    }

    package func cancelStop(of thread: Int32) { cunwind_cancel_stop(engine, thread) }

    /// Lets all engines use the section `.debug_frame` of an image's file; it is copied, and kept for good.
    package static func addDebugFrame(_ section: [UInt8], of image: LoadedImage) {
        var identity = cunwind_image()
        identity.build_id_length = UInt8(clamping: image.buildID.count)
        withUnsafeMutableBytes(of: &identity.build_id) { $0.copyBytes(from: image.buildID.prefix($0.count)) }
        identity.content_hash = image.contentHash ?? 0
        _ = cunwind_add_debug_frame(&identity, section, section.count)
    }

    private func result(
        of probe: ThreadProbe, _ method: StallReport.CaptureMethod, hasReturned: Bool = false,
        _ call: (inout cunwind_capture_info) -> cunwind_status
    ) throws(CaptureFailure) -> CapturedStack {
        cunwind_engine_prepare(engine)
        var info = cunwind_capture_info()
        let status = call(&info)
        var held = info.held_nanoseconds
        defer { Self.count(held) }
        switch status {
        case CUNWIND_OK:
            var captured =
                hasReturned ? captured(method, info) : withAsyncCallers(of: probe.handle, method, info)
            held = captured.heldNanoseconds
            captured.call = Self.call(info, hasReturned: method == .ptrace)
            captured.capturedAt = info.copied_at == 0 ? nil : info.copied_at
            addContext(to: &captured)
            return captured
        case CUNWIND_NO_SUCH_THREAD: throw .noSuchThread
        case CUNWIND_NOT_BLOCKED: throw .notBlocked
        case CUNWIND_MOVED: throw .moved
        case CUNWIND_REFUSED: throw .refused(errno: info.error)
        case CUNWIND_TIMED_OUT: throw .timedOut
        case CUNWIND_NOT_SHOWN: throw .unknownSystemCall
        case CUNWIND_SIGNAL_BLOCKED: throw .signalBlocked
        case CUNWIND_PENDING: throw .pending
        case CUNWIND_NOT_PENDING: throw .notPending
        default: throw .failed(errno: info.error)
        }
    }

    private struct Holds {
        var count = 0
        var sum: UInt64 = 0
        var longest: UInt64 = 0
    }
    private static let allHolds = ProcessMutex(Holds())

    /// How often captures that were answered in time have kept a thread of this process from running, for how long in all and
    /// at most, in nanoseconds.
    package static var holds: (count: Int, sum: UInt64, longest: UInt64) { count(0) }

    @discardableResult
    private static func count(_ hold: UInt64) -> (count: Int, sum: UInt64, longest: UInt64) {
        allHolds.withLock { all in
            // A thread that was only read was not held.
            if hold > 0 { all = Holds(count: all.count + 1, sum: all.sum &+ hold, longest: max(all.longest, hold)) }
            return (all.count, all.sum, all.longest)
        }
    }

    package func images() -> ImageList {
        let count = cunwind_engine_refresh_images(engine)
        let generation = cunwind_engine_image_generation(engine)
        guard generation != imageGeneration else { return imageList }
        imageGeneration = generation
        imageList = ImageList((0..<count).compactMap(image))
        return imageList
    }
}

/// Reads memory of this process through the kernel, for which an unmapped address is an error, not a signal.
package struct GuardedMemory: MemoryReading {
    package init() {}

    package func bytes(at address: UInt64, count: Int) -> [UInt8]? {
        guard count > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        return cunwind_read_memory(address, &bytes, count) ? bytes : nil
    }

    /// Where an object of the module Dispatch has its only property, after type and reference count: the address of the C object.
    private static let wrappedOffset: UInt64 = 16

    /// Returns the address of the C object of a `DispatchQueue` or `DispatchGroup`, which is not confirmed; `nil` if it cannot be
    /// read.
    package func dispatchObject(of wrapper: AnyObject) -> UInt64? {
        // Only read while `wrapper` exists.
        withExtendedLifetime(wrapper) {
            word(at: UInt64(UInt(bitPattern: Unmanaged.passUnretained(wrapper).toOpaque())) + Self.wrappedOffset)
        }
    }
}

// MARK: - C values to Swift values

extension CUnwindEngine {
    /// Returns the captured stack, with the async callers inserted after their async functions.
    private func withAsyncCallers(
        of handle: OpaquePointer, _ method: StallReport.CaptureMethod, _ info: cunwind_capture_info
    ) -> CapturedStack {
        var info = info
        asyncCallers.pointee.count = 0
        // A signal handler only copies the stack: the thread is never held while its async callers could be read.
        let status =
            method == .signal
            ? CUNWIND_OK
            : cunwind_read_async_callers(engine, handle, method == .ptrace, stack, asyncCallers, &info)
        var captured = captured(method, info)
        switch status {
        case CUNWIND_OK: break
        case CUNWIND_MOVED, CUNWIND_NOT_BLOCKED:
            captured.missingAsyncCallersReason = "the async functions went on meanwhile"
        default: captured.missingAsyncCallersReason = "the thread could not be held a second time"
        }
        let count = min(Int(asyncCallers.pointee.count), Int(CUNWIND_MAX_ASYNC_CALLERS))
        let callers = withUnsafeBytes(of: &asyncCallers.pointee.callers) { bytes in
            // The array has CUNWIND_MAX_ASYNC_CALLERS elements, of which `count` are filled.
            Array(bytes.bindMemory(to: cunwind_async_caller.self).prefix(count))
        }
        // From the outermost frame inward, so that the other indices stay valid.
        for caller in callers.reversed() where Int(caller.frame) < captured.frames.count {
            captured.frames.insert(
                CapturedFrame(
                    address: caller.address, isExact: true, kind: caller.is_task_start != 0 ? .taskStart : .asyncCaller,
                    isUncertain: captured.frames[Int(caller.frame)].isUncertain
                ),
                at: Int(caller.frame) + 1
            )
        }
        return captured
    }

    private static func call(_ info: cunwind_capture_info, hasReturned: Bool) -> CapturedCall? {
        guard info.is_in_call else { return nil }
        let target = withUnsafeBytes(of: info.target) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let arguments = info.arguments
        return CapturedCall(
            number: info.system_call < 0 ? nil : Int(info.system_call),
            arguments: [arguments.0, arguments.1, arguments.2, arguments.3, arguments.4, arguments.5],
            target: target.isEmpty ? nil : target, hasReturned: hasReturned
        )
    }

    private func captured(
        _ method: StallReport.CaptureMethod, _ info: cunwind_capture_info
    ) -> CapturedStack {
        let count = min(Int(stack.pointee.frame_count), Int(CUNWIND_MAX_FRAMES))
        // 0 if no frame was left out. The innermost frame has no callee.
        let gap = Int(stack.pointee.omitted_at)
        var hasGuess = false
        let frames = withUnsafeBytes(of: &stack.pointee.frames) { bytes in
            // The array has CUNWIND_MAX_FRAMES elements, of which `count` are filled.
            bytes.bindMemory(to: cunwind_frame.self).prefix(count).enumerated().map { index, frame in
                hasGuess = hasGuess || frame.is_uncertain != 0
                return CapturedFrame(
                    address: frame.address, isExact: frame.is_exact != 0,
                    kind: frame.is_signal_frame != 0 ? .signal : .code,
                    isUncertain: frame.is_uncertain != 0 || (gap > 0 && index == gap)
                )
            }
        }
        let end = cunwind_end(rawValue: UInt32(stack.pointee.end))
        return CapturedStack(
            method: method,
            threadState: .running,
            frames: frames,
            isComplete: end == CUNWIND_END_COMPLETE,
            incompleteReason: Self.describe(end) ?? (hasGuess ? Self.guessed : nil),
            heldNanoseconds: info.held_nanoseconds,
            captureNanoseconds: info.capture_nanoseconds
        )
    }

    private func image(_ index: Int) -> LoadedImage? {
        var image = cunwind_image()
        guard cunwind_engine_image(engine, index, &image), let file = image.path else { return nil }
        let path = pathText(cString: file)
        // An upgrade may have replaced the file since the program's start.
        let isExecutable = path.isEmpty || path == executable || path == executable + " (deleted)"
        let buildID = withUnsafeBytes(of: image.build_id) { Array($0.prefix(Int(image.build_id_length))) }
        return LoadedImage(
            path: isExecutable ? executable : path,
            base: image.base,
            addresses: image.low..<max(image.high, image.low),
            buildID: buildID,
            contentHash: image.content_hash == 0 ? nil : image.content_hash,
            isExecutable: isExecutable
        )
    }

    private static func isSocket(_ argument: UInt64) -> Bool {
        // A descriptor is an int: of its register, only the lower half counts.
        let descriptor = Int32(truncatingIfNeeded: argument)
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    private static let guessed =
        "a function has no unwind information: where it was called from is a guess, and frames may be missing"

    private static func describe(_ end: cunwind_end) -> String? {
        switch end {
        case CUNWIND_END_COMPLETE: nil
        case CUNWIND_END_NO_UNWIND_INFO: "a function has no unwind information"
        case CUNWIND_END_BAD_MEMORY: "a part of the stack is not mapped"
        case CUNWIND_END_NOT_IN_COPY: "the stack is larger than the part that is copied"
        case CUNWIND_END_LOOP: "the stack is damaged: it does not lead outwards"
        case CUNWIND_END_BAD_CODE_ADDRESS: "a return address is not in any image's code"
        case CUNWIND_END_UNKNOWN_CODE: "code that is in no image, such as that of a JIT compiler, was crossed"
        case CUNWIND_END_TOO_DEEP: "the stack is deeper than the limit"
        case CUNWIND_END_TOO_LONG: "the unwind took too long: unwind tables may be damaged"
        default: "unknown"
        }
    }
}
