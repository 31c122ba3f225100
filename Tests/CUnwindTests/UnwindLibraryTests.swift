import CUnwind
import CUnwindTestSupport
import Glibc
import Testing

/// libunwind is loaded at run time, and stacks are unwound without it where it is missing.
@Suite(.serialized) struct UnwindLibraryTests {
    @Test func `libunwind is loaded from the system's path`() throws {
        let engine = try #require(cunwind_engine_create(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_engine_has_libunwind(engine))
        #expect(String(cString: cunwind_engine_libunwind_error(engine)).isEmpty)
    }

    @Test func `a path without libunwind falls back to the system's`() throws {
        let engine = try #require(Self.engine(libunwind: "/nonexistent/libunwind.so"))
        defer { cunwind_engine_destroy(engine) }
        #expect(cunwind_engine_has_libunwind(engine))
    }

    @Test func `none of libunwind's symbols are global`() throws {
        let engine = try #require(cunwind_engine_create(SIGURG))
        defer { cunwind_engine_destroy(engine) }
        // RTLD_DEFAULT, which the importer does not see: it is a cast.
        #expect(dlsym(nil, "_Ux86_64_step") == nil)
        #expect(dlsym(nil, "_Uaarch64_step") == nil)
    }

    @Test(arguments: [CaptureEngine.Way.stop, .signal])
    func `without libunwind a stack is marked and useful`(way: CaptureEngine.Way) throws {
        let thread = try #require(cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 20))
        let engine = try CaptureEngine(thread: cunwind_test_thread_tid(thread), libunwind: "")
        #expect(engine.capture(by: way) == CUNWIND_OK)
        #expect(engine.stack.end == UInt8(CUNWIND_END_NO_LIBUNWIND.rawValue))
        #expect(engine.addresses.filter(cunwind_test_thread_contains).count >= 21)
        #expect(cunwind_test_thread_stop(thread) > 0, "the thread did not go on")
    }

    private static func engine(libunwind path: String) -> OpaquePointer? {
        path.withCString { path in
            var options = cunwind_options()
            options.signal_number = SIGURG
            options.libunwind_path = path
            return cunwind_engine_create_with(&options)
        }
    }
}
