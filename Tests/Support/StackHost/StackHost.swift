import CUnwind
import CUnwindTestSupport
import Glibc

/// Holds threads still in deep stacks, captures them, and waits until gdb has captured them, too.
///
///     stack-host LIBRARY STACK...
///
/// Each STACK is a function `stack_STACK` of LIBRARY that stores its thread in `stack_reached` and never returns.
/// Captures with libunwind, and then with the built-in stepper alone. Prints `unwinder NAME`, each capture as
/// `STACK thread TID METHOD` and one line `STACK frame METHOD ADDRESS` per frame; at the end `ready`. Exits at the end of
/// standard input.
@main
struct StackHost {
    private let engine: OpaquePointer
    /// The buffer of a capture, too large for a stack.
    private let stack = UnsafeMutablePointer<cunwind_stack>.allocate(capacity: 1)

    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count > 2 else { fail("usage: stack-host LIBRARY STACK...") }
        cunwind_test_allow_tracing()
        // Set the signal mask: a test runs on a Dispatch thread, whose mask blocks nearly every signal.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        guard let library = dlopen(arguments[1], RTLD_NOW) else { fail(String(cString: dlerror())) }
        // An engine chooses its unwinder when it is created.
        let engines = ["", "builtin"].map { wanted in
            setenv("STALLWATCH_UNWINDER", wanted, 1)
            guard let engine = cunwind_test_engine(SIGPROF) else { fail("no engine: \(errno)") }
            return engine
        }
        let threads = arguments.dropFirst(2).map { ($0, start($0, of: library)) }
        // A thread notes its id just before it blocks.
        usleep(200_000)
        for engine in engines {
            let unwinder = cunwind_engine_unwinder(engine)
            print("unwinder \(String(cString: unwinder.name).prefix { $0 != " " })")
            for (name, thread) in threads { StackHost(engine: engine).capture(name, thread) }
        }
        print("ready")
        fflush(nil)
        while getchar() != EOF {}
        // The threads never end, so exit.
        _exit(0)
    }

    init(engine: OpaquePointer) { self.engine = engine }

    /// Starts the thread of that stack and returns the id of the thread that reaches the stack's innermost function.
    private static func start(_ name: String, of library: UnsafeMutableRawPointer) -> Int32 {
        guard let function = dlsym(library, "stack_" + name),
            let symbol = dlsym(library, "stack_reached")
        else { fail("no stack \(name)") }
        let reached = symbol.assumingMemoryBound(to: Int32.self)
        reached.pointee = 0
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { function in
                // Never nil: dlsym(3) found it. The stacks take and return nothing.
                guard let function else { return nil }
                unsafeBitCast(function, to: (@convention(c) () -> Void).self)()
                return nil
            }, function
        )
        guard status == 0 else { fail("no thread for \(name): \(status)") }
        for _ in 0..<5000 {
            usleep(1000)
            // Another thread writes it with one atomic store; a C library call separates two of these loads.
            if reached.pointee != 0 { return reached.pointee }
        }
        fail("\(name) does not come to its end")
    }

    /// Captures by every method for such a thread: read and ptrace for a blocked thread, only ptrace for a running one.
    private func capture(_ name: String, _ thread: Int32) {
        guard let handle = cunwind_thread_open(thread, UInt32(CUNWIND_ALL_THREAD_FILES.rawValue), nil) else {
            Self.fail("\(name) has no thread \(thread)")
        }
        defer { cunwind_thread_close(handle) }
        cunwind_engine_refresh_images(engine)
        var status = cunwind_thread_status()
        var info = cunwind_capture_info()
        cunwind_thread_inspect(handle, &status)
        if status.is_blocked { show(name, thread, "read") { cunwind_capture_read(engine, handle, stack, &info) } }
        show(name, thread, "ptrace") { cunwind_capture_stop(engine, handle, stack, &info) }
    }

    /// Captures, again on a machine that is so busy that a thread does not stop in time, and prints the stack.
    private func show(_ name: String, _ thread: Int32, _ method: String, _ capture: () -> cunwind_status) {
        var status = capture()
        for _ in 0..<100 where status != CUNWIND_OK {
            usleep(10_000)
            status = capture()
        }
        guard status == CUNWIND_OK else { Self.fail("\(name): \(method) gave status \(status.rawValue)") }
        print("\(name) thread \(thread) \(method)")
        withUnsafeBytes(of: &stack.pointee.frames) { bytes in
            // The array has CUNWIND_MAX_FRAMES elements; the first `count` are filled.
            for frame in bytes.bindMemory(to: cunwind_frame.self).prefix(Int(stack.pointee.frame_count)) {
                print("\(name) frame \(method) \(frame.address)")
            }
        }
        if stack.pointee.end != UInt8(CUNWIND_END_COMPLETE.rawValue) {
            print("\(name) incomplete \(method) \(stack.pointee.end)")
        }
    }

    private static func fail(_ message: String) -> Never {
        perror(message)
        exit(1)
    }
}
