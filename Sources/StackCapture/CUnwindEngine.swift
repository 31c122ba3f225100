package import LinuxSupport
internal import CUnwind
import Glibc

/// Captures stacks with CUnwind.
///
/// The only file that knows of it.
///
/// Lives on the watchdog: an engine belongs to one thread at a time.
package final class CUnwindEngine: CaptureEngine {
    private let engine: OpaquePointer
    /// The result of the last unwind, reused: at half a thousand frames it is too large for a stack.
    private let stack: UnsafeMutablePointer<cunwind_stack>
    private let asyncCallers: UnsafeMutablePointer<cunwind_async_callers>
    private var threads: [Int32: OpaquePointer] = [:]
    /// How many of them there may be before those that have ended are looked for.
    private var threadsBeforeTidying = CUnwindEngine.leastThreadsToTidy
    private var imageList = ImageList()
    private var imageGeneration: UInt64 = 0
    private let executable = readLink("/proc/self/exe") ?? ""

    /// Threads whose /proc files are kept open; past it, all are closed and opened again as they are needed.
    static let maximumOpenThreads = 64
    /// Fewer are not worth looking at: three descriptors each.
    static let leastThreadsToTidy = 8

    /// The signal of the last resort: the only one that dispatch's worker threads let through (their mask leaves
    /// ILL, TRAP, BUS, FPE, SEGV, SYS, PROF and PIPE open).
    static let defaultSignal = SIGPROF

    /// `signal`: The signal where the kernel refuses the other ways, 1 … 64.
    package init(signal: Int32 = CUnwindEngine.defaultSignal) throws(SystemError) {
        guard let engine = cunwind_engine_create(signal) else {
            throw SystemError("the capture engine cannot be made", errno: errno)
        }
        self.engine = engine
        stack = .allocate(capacity: 1)
        stack.initialize(to: cunwind_stack())
        asyncCallers = .allocate(capacity: 1)
        asyncCallers.initialize(to: cunwind_async_callers())
    }

    deinit {
        for thread in threads.values { cunwind_thread_close(thread) }
        cunwind_engine_destroy(engine)
        stack.deallocate()
        asyncCallers.deallocate()
    }

    /// Lets the calling thread run soon after it wakes, where the kernel can do that.
    ///
    /// For the thread that captures: on a busy processor it would otherwise come milliseconds late.
    package static func requestShortSlice() {
        _ = cunwind_request_short_slice()
    }

    package func probeStop() -> Bool {
        // Only a refusal is for ever. On a busy machine the probe may run out of time, and signals instead of stops would
        // then interrupt the app's calls for nothing (measured: 9 of 86 calls of poll).
        cunwind_engine_probe_stop(engine, nil) != CUNWIND_REFUSED
    }

    package func status(of thread: Int32) throws(CaptureFailure) -> ThreadStatus {
        // Before the capture, which knows only the images of the last refresh.
        cunwind_engine_refresh_images(engine)
        let handle = try open(thread)
        var status = cunwind_thread_status()
        guard cunwind_thread_inspect(handle, &status) == CUNWIND_OK else {
            forget(thread)
            throw .noSuchThread
        }
        let isUninterruptible = status.state == CChar(UInt8(ascii: "D"))
        guard status.shows_system_call else {
            guard isUninterruptible || status.state == CChar(UInt8(ascii: "S")) else {
                return ThreadStatus(state: .running)
            }
            let restarts = withUnsafePointer(to: &status.waits_in) { name in
                // CUNWIND_WAIT_NAME_BYTES characters, of which the last one is 0.
                name.withMemoryRebound(to: CChar.self, capacity: Int(CUNWIND_WAIT_NAME_BYTES)) {
                    cunwind_wait_restarts_after_stop($0)
                }
            }
            return ThreadStatus(
                state: isUninterruptible ? .uninterruptible : .blocked, isInterruptedByStop: !restarts, isOpaque: true
            )
        }
        guard status.is_blocked else { return ThreadStatus(state: .running) }
        return ThreadStatus(
            state: isUninterruptible ? .uninterruptible : .blocked,
            systemCall: status.system_call < 0 ? nil : Int(status.system_call),
            isInterruptedByStop: cunwind_call_is_interrupted_by_stop(
                status.system_call, Self.isSocket(status.arguments.0)
            )
        )
    }

    package func capture(_ thread: Int32, by method: CapturedStack.Method) throws(CaptureFailure) -> CapturedStack {
        let handle = try open(thread)
        var info = cunwind_capture_info()
        let status =
            switch method {
            case .read: cunwind_capture_read(engine, handle, stack, &info)
            case .ptrace: cunwind_capture_stop(engine, handle, stack, &info)
            case .signal: cunwind_capture_signal(engine, handle, stack, &info)
            }
        switch status {
        case CUNWIND_OK: return withAsyncCallers(of: handle, method, info)
        case CUNWIND_NO_SUCH_THREAD:
            forget(thread)
            throw .noSuchThread
        case CUNWIND_NOT_BLOCKED: throw .notBlocked
        case CUNWIND_MOVED: throw .moved
        case CUNWIND_REFUSED: throw .refused(errno: info.error)
        case CUNWIND_TIMED_OUT: throw .timedOut
        case CUNWIND_NOT_SHOWN: throw .unknownSystemCall
        case CUNWIND_SIGNAL_BLOCKED: throw .signalBlocked
        default: throw .failed(errno: info.error)
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

    package func leave(processor: Int32) {
        _ = cunwind_engine_leave_processor(engine, processor)
    }
}

// MARK: - C values to Swift values

extension CUnwindEngine {
    /// The stack that was captured, with the async callers put in behind their async functions.
    private func withAsyncCallers(
        of handle: OpaquePointer, _ method: CapturedStack.Method, _ info: cunwind_capture_info
    ) -> CapturedStack {
        var info = info
        asyncCallers.pointee.count = 0
        // A signal handler copies and does nothing else, so there is no moment at which the callers could be read.
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
        // From the outermost frame inwards, so that the indices of the others hold.
        for caller in callers.reversed() where Int(caller.frame) < captured.frames.count {
            captured.frames.insert(
                CapturedStack.Frame(
                    address: caller.address, isExact: true, kind: caller.is_task_start != 0 ? .taskStart : .asyncCaller
                ),
                at: Int(caller.frame) + 1
            )
        }
        return captured
    }

    private func captured(
        _ method: CapturedStack.Method, _ info: cunwind_capture_info
    ) -> CapturedStack {
        let count = min(Int(stack.pointee.frame_count), Int(CUNWIND_MAX_FRAMES))
        let frames = withUnsafeBytes(of: &stack.pointee.frames) { bytes in
            // The array has CUNWIND_MAX_FRAMES elements, of which `count` are filled.
            bytes.bindMemory(to: cunwind_frame.self).prefix(count).map {
                CapturedStack.Frame(address: $0.address, isExact: $0.is_exact != 0)
            }
        }
        let end = cunwind_end(rawValue: UInt32(stack.pointee.end))
        return CapturedStack(
            method: method,
            threadState: .running,
            frames: frames,
            isComplete: end == CUNWIND_END_COMPLETE,
            incompleteReason: Self.describe(end),
            heldNanoseconds: info.held_nanoseconds,
            captureNanoseconds: info.capture_nanoseconds
        )
    }

    private func image(_ index: Int) -> LoadedImage? {
        var image = cunwind_image()
        guard cunwind_engine_image(engine, index, &image), let file = image.path else { return nil }
        let path = String(cString: file)
        let buildID = withUnsafeBytes(of: image.build_id) { Array($0.prefix(Int(image.build_id_length))) }
        return LoadedImage(
            path: path.isEmpty ? executable : path,
            base: image.base,
            addresses: image.low..<max(image.high, image.low),
            buildID: buildID,
            isExecutable: path.isEmpty || path == executable
        )
    }

    /// Whether the number is an open socket's descriptor in this process.
    ///
    /// Only asks; nothing happens to the socket.
    private static func isSocket(_ argument: UInt64) -> Bool {
        guard let descriptor = Int32(exactly: argument) else { return false }
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    private static func describe(_ end: cunwind_end) -> String? {
        switch end {
        case CUNWIND_END_COMPLETE: nil
        case CUNWIND_END_NO_UNWIND_INFO: "a function has no unwind information"
        case CUNWIND_END_BAD_MEMORY: "a part of the stack is not mapped"
        case CUNWIND_END_NOT_IN_COPY: "the stack is larger than what is copied"
        case CUNWIND_END_LOOP: "the stack is damaged: it does not lead outwards"
        case CUNWIND_END_BAD_CODE_ADDRESS: "a return address is not in any image's code"
        case CUNWIND_END_TOO_DEEP: "the stack is deeper than the limit"
        default: "unknown"
        }
    }
}

// MARK: - Open threads

extension CUnwindEngine {
    private func open(_ thread: Int32) throws(CaptureFailure) -> OpaquePointer {
        if let known = threads[thread] { return known }
        if threads.count >= threadsBeforeTidying { tidy() }
        guard let handle = cunwind_thread_open(engine, thread) else {
            throw errno == ESRCH ? .noSuchThread : .failed(errno: errno)
        }
        threads[thread] = handle
        return handle
    }

    /// Closes the files of threads that have ended, and of all when too many are left.
    private func tidy() {
        var status = cunwind_thread_status()
        for (thread, handle) in threads where cunwind_thread_inspect(handle, &status) != CUNWIND_OK { forget(thread) }
        if threads.count >= Self.maximumOpenThreads { for thread in threads.keys { forget(thread) } }
        // Twice as many: however many threads live, each is looked at once for each that is opened.
        threadsBeforeTidying = min(max(2 * threads.count, Self.leastThreadsToTidy), Self.maximumOpenThreads)
    }

    private func forget(_ thread: Int32) {
        cunwind_thread_close(threads.removeValue(forKey: thread))
    }
}
