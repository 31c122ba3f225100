import CUnwind
import CUnwindTestSupport
import Foundation
import TestSupport
import Testing

/// Without a /proc file, only data that no other file has is missing; the thread never counts as ended.
@Suite(.serialized, .needsPtrace) struct ThreadFileTests {
    /// A directory that replaces a thread's, with links to some of its files.
    private final class Files {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("proc-\(UUID().uuidString)").path

        init(thread: pid_t, _ names: [String]) throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            for name in names {
                try FileManager.default.createSymbolicLink(
                    atPath: "\(path)/\(name)", withDestinationPath: "/proc/self/task/\(thread)/\(name)"
                )
            }
        }

        func write(_ text: String, to name: String) throws {
            try text.write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    /// A thread that repeats a poll(2) of 20 ms.
    private func withSleeper(
        _ names: [String], _ body: (CaptureEngine, Files) throws -> Void
    ) throws {
        let thread = try #require(cunwind_test_thread_start(CUNWIND_TEST_IN_ALLOCA, 3))
        let id = cunwind_test_thread_tid(thread)
        let files = try Files(thread: id, names)
        try body(try CaptureEngine(thread: id, proc: files.path), files)
        #expect(cunwind_test_thread_stop(thread) > 0, "the thread did not go on")
    }

    private func read(_ engine: CaptureEngine) -> cunwind_status {
        var status = engine.capture(by: .read)
        for _ in 0..<30_000 where status == CUNWIND_NOT_BLOCKED || status == CUNWIND_MOVED {
            usleep(1000)
            status = engine.capture(by: .read)
        }
        return status
    }

    @Test(arguments: [[], ["status"], ["status", "schedstat"], ["syscall"], ["schedstat"]])
    func `a thread with missing files is there and can be stopped`(names: [String]) throws {
        try withSleeper(names) { engine, _ in
            let status = try engine.status()
            #expect(status.shows_system_call == names.contains("syscall"))
            #expect(engine.capture(by: .stop) == CUNWIND_OK)
            #expect(engine.isComplete)
        }
    }

    @Test func `without syscall a thread cannot be read`() throws {
        try withSleeper(["status", "schedstat"]) { engine, _ in
            #expect(engine.capture(by: .read) == CUNWIND_NOT_SHOWN)
        }
    }

    @Test func `without schedstat the switches prove a read`() throws {
        try withSleeper(["status", "syscall"]) { engine, _ in
            #expect(read(engine) == CUNWIND_OK)
            #expect(engine.isComplete)
        }
    }

    @Test func `without status the time slices prove a read`() throws {
        try withSleeper(["schedstat", "syscall"]) { engine, _ in
            #expect(read(engine) == CUNWIND_OK)
            #expect(engine.isComplete)
        }
    }

    @Test func `without any count a read is not valid`() throws {
        try withSleeper(["syscall"]) { engine, _ in
            #expect(read(engine) == CUNWIND_NOT_SHOWN)
        }
    }

    /// gVisor's status file has neither signal masks nor counts.
    @Test func `a short status file still says the state`() throws {
        let thread = try #require(cunwind_test_thread_start(CUNWIND_TEST_IN_ALLOCA, 3))
        defer { _ = cunwind_test_thread_stop(thread) }
        let id = cunwind_test_thread_tid(thread)
        let files = try Files(thread: id, [])
        try files.write("Name:\thost\nState:\tS (sleeping)\nTgid:\t1\n", to: "status")
        try files.write("", to: "syscall")
        let status = try CaptureEngine(thread: id, proc: files.path).status()
        #expect(status.state == CChar(UInt8(ascii: "S")))
        #expect(!status.shows_system_call)
        #expect(!status.counts_switches)
    }

    @Test func `wchan says where an opaque thread waits`() throws {
        let thread = try #require(cunwind_test_thread_start(CUNWIND_TEST_IN_ALLOCA, 3))
        defer { _ = cunwind_test_thread_stop(thread) }
        let id = cunwind_test_thread_tid(thread)
        let files = try Files(thread: id, ["status"])
        try files.write("ep_poll", to: "wchan")
        var status = try CaptureEngine(thread: id, proc: files.path).status()
        let name = withUnsafeBytes(of: &status.waits_in) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        #expect(name == "ep_poll")
    }

    @Test(arguments: ["ep_poll", "do_sigtimedwait", "io_cqring_wait", "do_wait_intr", "anon_pipe_write", "", "0"])
    func `a wait that a stop interrupts is not taken to restart`(name: String) {
        #expect(!cunwind_wait_restarts_after_stop(name))
    }

    @Test(arguments: ["futex_wait_queue", "do_wait", "poll_schedule_timeout.constprop.0", "anon_pipe_read"])
    func `a wait that restarts is known as such`(name: String) {
        #expect(cunwind_wait_restarts_after_stop(name))
    }

    @Test func `a thread that has ended is gone without any file`() throws {
        let thread = try #require(cunwind_test_thread_start(CUNWIND_TEST_IN_ALLOCA, 3))
        let id = cunwind_test_thread_tid(thread)
        let files = try Files(thread: id, [])
        let engine = try CaptureEngine(thread: id, proc: files.path)
        #expect(try engine.status().state == 0)
        #expect(cunwind_test_thread_stop(thread) > 0)
        #expect(engine.capture(by: .stop) == CUNWIND_NO_SUCH_THREAD)
    }

    /// The kernel gives the lowest free number, so one at four fifths of the limit means that as many are in use.
    @Test func `near the limit of descriptors a thread is opened without taking any`() throws {
        let engine = try #require(cunwind_test_engine(SIGPROF))
        defer { cunwind_engine_destroy(engine) }
        let free = try lowestFreeDescriptor()
        var before = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) == 0)
        var near = rlimit(rlim_cur: UInt(free) * 5 / 4, rlim_max: before.rlim_max)
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &near) == 0)
        defer { setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before) }
        errno = 0
        #expect(cunwind_thread_open(getpid(), UInt32(CUNWIND_ALL_THREAD_FILES.rawValue), nil) == nil)
        #expect(errno == EMFILE)
        #expect(try lowestFreeDescriptor() == free)
    }

    private func lowestFreeDescriptor() throws -> Int32 {
        let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        close(descriptor)
        return descriptor
    }
}
