import CUnwind
import Glibc
import Testing

final class CaptureEngine {
    enum Way {
        case read, stop, stopOrWait
    }

    private let engine: OpaquePointer
    private let thread: OpaquePointer
    /// The buffer that a capture fills, which is too large for a stack.
    private let buffer: UnsafeMutablePointer<cunwind_stack>
    private(set) var info = cunwind_capture_info()

    /// `proc` is a directory that replaces /proc/self/task/<tid>.
    init(thread tid: pid_t, proc: String? = nil) throws {
        var options = cunwind_options()
        options.signal_number = SIGPROF
        engine = try #require(cunwind_engine_create(&options))
        thread = try #require(cunwind_thread_open(tid, UInt32(CUNWIND_ALL_THREAD_FILES.rawValue), proc))
        buffer = .allocate(capacity: 1)
        buffer.initialize(to: cunwind_stack())
        cunwind_engine_refresh_images(engine)
    }

    deinit {
        cunwind_thread_close(thread)
        cunwind_engine_destroy(engine)
        buffer.deallocate()
    }

    func status() throws -> cunwind_thread_status {
        var status = cunwind_thread_status()
        try #require(cunwind_thread_inspect(thread, &status) == CUNWIND_OK)
        return status
    }

    func capture(by way: Way) -> cunwind_status {
        switch way {
        case .read: cunwind_capture_read(engine, thread, buffer, &info)
        case .stop: cunwind_capture_stop(engine, thread, buffer, &info)
        case .stopOrWait: cunwind_capture_stop_pending(engine, thread, buffer, &info)
        }
    }

    func collect() -> cunwind_status { cunwind_collect_stop(engine, thread, buffer, &info) }

    func cancelStop(of tid: pid_t) { cunwind_cancel_stop(engine, tid) }

    func stop(_ other: pid_t) -> cunwind_status {
        guard let thread = cunwind_thread_open(other, UInt32(CUNWIND_ALL_THREAD_FILES.rawValue), nil) else {
            return CUNWIND_NO_SUCH_THREAD
        }
        defer { cunwind_thread_close(thread) }
        return cunwind_capture_stop(engine, thread, buffer, &info)
    }

    var stack: cunwind_stack { buffer.pointee }

    var isComplete: Bool { buffer.pointee.end == UInt8(CUNWIND_END_COMPLETE.rawValue) }

    /// The addresses of the last capture's frames, innermost first, inside the instruction that each is at.
    var addresses: [UInt64] {
        withUnsafeBytes(of: &buffer.pointee.frames) { bytes in
            // The array has CUNWIND_MAX_FRAMES elements, of which `frame_count` are filled.
            bytes.bindMemory(to: cunwind_frame.self).prefix(Int(buffer.pointee.frame_count))
                .map { $0.is_exact != 0 ? $0.address : $0.address &- 1 }
        }
    }
}
