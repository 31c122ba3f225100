internal import CUnwind
import Glibc

/// Captures stacks with CUnwind. The only file that knows of it.
///
/// Lives on the watchdog: an engine belongs to one thread at a time.
final class ThreadCapture: StackCapturing {
    private let engine: OpaquePointer
    /// The result of the last unwind, reused: at half a thousand frames it is too large for a stack.
    private let stack: UnsafeMutablePointer<cunwind_stack>
    private var threads: [Int32: OpaquePointer] = [:]
    private var imageList = ImageList()
    private var executable = readLink("/proc/self/exe") ?? ""

    /// Threads whose /proc files are kept open; past it, all are closed and opened again as they are needed.
    static let maximumOpenThreads = 64

    init() throws(StallWatchError) {
        guard let engine = cunwind_engine_create(SIGPROF) else {
            throw StallWatchError(.systemFailure, "the capture engine cannot be made", errno: errno)
        }
        self.engine = engine
        stack = .allocate(capacity: 1)
        stack.initialize(to: cunwind_stack())
    }

    deinit {
        for thread in threads.values { cunwind_thread_close(thread) }
        cunwind_engine_destroy(engine)
        stack.deallocate()
    }

    func capture(thread: Int32) throws(CaptureError) -> CapturedStack {
        let handle = try open(thread)
        var look = cunwind_thread_look()
        guard cunwind_thread_look_at(handle, &look) == CUNWIND_OK else {
            forget(thread)
            throw CaptureError(description: "the thread has ended")
        }
        var info = cunwind_capture_info()
        let status = cunwind_capture_stop(engine, handle, stack, &info)
        guard status == CUNWIND_OK else {
            throw CaptureError(description: Self.describe(status, error: info.error))
        }
        return captured(.stop, look, info)
    }

    func images() -> ImageList {
        let count = cunwind_engine_refresh_images(engine)
        if count == imageList.images.count { return imageList }
        imageList = ImageList((0..<count).compactMap(image))
        return imageList
    }
}

// MARK: - C values to Swift values

extension ThreadCapture {
    private func captured(
        _ method: CapturedStack.Method, _ look: cunwind_thread_look, _ info: cunwind_capture_info
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
            threadState: look.is_blocked ? (look.state == CChar(UInt8(ascii: "D")) ? .uninterruptible : .blocked) : .running,
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
        let buildID = withUnsafeBytes(of: image.build_id) { bytes in
            bytes.prefix(Int(image.build_id_length)).map { hexadecimal($0, width: 2) }.joined()
        }
        return LoadedImage(
            path: path.isEmpty ? executable : path,
            base: image.base,
            addresses: image.low..<max(image.high, image.low),
            buildID: buildID.isEmpty ? nil : buildID,
            isExecutable: path.isEmpty || path == executable
        )
    }

    private static func describe(_ status: cunwind_status, error: Int32) -> String {
        switch status {
        case CUNWIND_NO_SUCH_THREAD: "the thread has ended"
        case CUNWIND_NOT_BLOCKED: "the thread was running"
        case CUNWIND_MOVED: "the thread ran while it was read"
        case CUNWIND_REFUSED: "the system does not allow ptrace here: \(String(cString: strerror(error)))"
        case CUNWIND_TIMED_OUT: "the thread did not stop in time"
        case CUNWIND_SIGNAL_BLOCKED: "signal blocked"
        default: "the capture failed: \(String(cString: strerror(error)))"
        }
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

extension ThreadCapture {
    private func open(_ thread: Int32) throws(CaptureError) -> OpaquePointer {
        if let known = threads[thread] { return known }
        if threads.count >= Self.maximumOpenThreads {
            for handle in threads.values { cunwind_thread_close(handle) }
            threads.removeAll()
        }
        guard let handle = cunwind_thread_open(engine, thread) else {
            throw CaptureError(
                description: errno == ESRCH ? "the thread has ended" : "its /proc files cannot be opened: "
                    + String(cString: strerror(errno))
            )
        }
        threads[thread] = handle
        return handle
    }

    private func forget(_ thread: Int32) {
        cunwind_thread_close(threads.removeValue(forKey: thread))
    }
}
