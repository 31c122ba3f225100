import CLinux
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture

@Suite struct ThreadProbeTests {
    private static let texts = [
        "schedstat": "12 3 4\n",
        "stat": "4700 (a) R 1) D 1 2 3 4 5 6 11 12 13 14 15 16 17 18 19 -5 5 0 4242 23\n",
        "status": "Name:\tx\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n",
        "syscall": "202 0x7f78467fbe40 0x80 0x2 0x0 0x0 0xffffffff 0x7ffe3c330ad0 0x7f9face42c4a\n",
        "wchan": "futex_wait_queue",
    ]

    /// Makes the directory of a process with a thread whose files have these texts.
    private func process(_ texts: [String: String]) throws -> TemporaryDirectory {
        let process = try TemporaryDirectory()
        let directory = process.path("task/\(getpid())")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        for (name, text) in texts { try text.write(toFile: "\(directory)/\(name)", atomically: true, encoding: .utf8) }
        return process
    }

    private func reading(_ texts: [String: String]) throws -> ThreadReading? {
        let process = try process(texts)
        return try ThreadProbe(thread: getpid(), process: process.path).read()
    }

    @Test func `a reading has the values of all files`() throws {
        let reading = try #require(try reading(Self.texts))
        #expect(reading.runQueue == 3 && reading.slices == 4)
        #expect(reading.state == UInt8(ascii: "D"))
        #expect(reading.minorFaults == 11 && reading.majorFaults == 13)
        #expect(reading.userTicks == 15 && reading.systemTicks == 16 && reading.nice == -5)
        #expect(reading.voluntarySwitches == 5 && reading.involuntarySwitches == 7)
        #expect(
            reading.shown
                == .waiting(
                    SystemCall(
                        number: 202, arguments: [0x7f78_467f_be40, 0x80, 2, 0, 0, 0xffff_ffff],
                        stackPointer: 0x7ffe_3c33_0ad0, programCounter: 0x7f9f_ace4_2c4a)))
        #expect(reading.waitChannel == "futex_wait_queue")
    }

    @Test(
        arguments: [
            ("running\n", .running), ("-1 0x7ffd0 0x55d0\n", .faulting), ("202 0x1 0x2\n", .running), ("", nil),
        ] as [(String, ThreadActivity?)])
    func `the system call says what the thread does`(text: String, shown: ThreadActivity?) throws {
        #expect(try reading(["status": "State:\tS\n", "syscall": text])?.shown == shown)
    }

    @Test func `what a file does not show is nil`() throws {
        let reading = try #require(
            try reading(["status": "Name:\tx\nState:\tS\n", "schedstat": "12 3\n", "stat": "1 (x) S 1\n", "wchan": "0"])
        )
        #expect(!reading.showsRunQueue && reading.runQueue == 0)
        #expect(reading.state == UInt8(ascii: "S"))
        #expect(reading.nice == nil && reading.voluntarySwitches == nil && reading.involuntarySwitches == nil)
        #expect(reading.waitChannel == nil)
    }

    @Test(arguments: texts.keys.sorted(), [true, false])
    func `a missing or empty file costs only what no other file shows`(name: String, isEmpty: Bool) throws {
        var (others, expected) = (Self.texts, try #require(try reading(Self.texts)))
        others[name] = isEmpty ? "" : nil
        var reading = try #require(try reading(others))
        switch name {
        case "schedstat": (expected.runQueue, expected.slices) = (0, 0)
        case "stat":
            (expected.minorFaults, expected.majorFaults) = (0, 0)
            (expected.userTicks, expected.systemTicks, expected.nice) = (0, 0, nil)
            expected.state = UInt8(ascii: "S")
        case "status": (expected.voluntarySwitches, expected.involuntarySwitches) = (nil, nil)
        case "syscall": expected.shown = nil
        default: expected.waitChannel = nil
        }
        (reading.time, reading.onCPU) = (expected.time, expected.onCPU)
        #expect(reading == expected)
    }

    @Test func `the kernel stack is innermost first`() throws {
        func stack(_ text: String) throws -> [String]? {
            let process = try process(["stack": text])
            return try ThreadProbe(thread: getpid(), process: process.path).kernelStack()
        }
        #expect(try stack("[<0>] pipe_read+0x1b/0x30\n[<0>] vfs_read+0x2/0x3\n") == ["pipe_read", "vfs_read"])
        #expect(try stack("") == nil)
    }

    @Test func `few files stay open in a process, and a thread beyond them is read all the same`() {
        var kept: [ThreadProbe] = []
        while kept.count < 50, let probe = try? ThreadProbe(thread: callingThread, files: [.all, .kept]) {
            kept.append(probe)
        }
        #expect(kept.count <= 12, "of five files each")
        var none: ThreadProbe?
        #expect(ThreadProbe.read(callingThread, keeping: &none)?.shown != nil)
        kept = []
        #expect(Self.keep(callingThread) != nil, "their room is free again")
    }

    /// Opens files that stay open, once other tests of this process keep few.
    private static func keep(_ thread: Int32, process: String = "/proc/self") -> ThreadProbe? {
        var probe: ThreadProbe?
        _ = eventually {
            probe = try? ThreadProbe(thread: thread, files: [.all, .kept], process: process)
            return probe != nil
        }
        return probe
    }

    /// As after closefrom(3) in a daemon, whose next files get the numbers.
    @Test func `files that the program has closed are opened again, and its own stay open`() throws {
        let process = try process(Self.texts)
        var probe = Self.keep(getpid(), process: process.path)
        let before = try #require(probe?.read())
        let numbers = (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }.filter {
            readLink("/proc/self/fd/\($0)")?.hasPrefix(process.path) == true
        }
        #expect(numbers.count == Self.texts.count)
        let theirs = open("/dev/zero", O_RDONLY | O_CLOEXEC)
        for number in numbers { dup2(theirs, number) }
        var after = try #require(probe?.read())
        (after.time, after.onCPU) = (before.time, before.onCPU)
        #expect(after == before)
        probe = nil
        for number in numbers + [theirs] { #expect(close(number) == 0) }
    }

    @Test func `the calling thread's own files are read`() throws {
        let reading = try #require(try ThreadProbe(ofThisThread: [.schedstat, .stat]).read())
        #expect(reading.state == UInt8(ascii: "R"))
        #expect(reading.voluntarySwitches == nil, "the file is not open")
    }

    /// Calls `body` with the id of a thread that computes until it returns; a `ProbedThread` stops after a time.
    private func whileComputing<Result>(_ body: (Int32) -> Result) throws -> Result {
        let id = Atomic<Int32>(0)
        let mayEnd = Atomic<Bool>(false)
        let thread = try WorkerThread(name: "computes") {
            id.store(clinux_gettid(), ordering: .releasing)
            while !mayEnd.load(ordering: .acquiring) {}
        }
        defer {
            mayEnd.store(true, ordering: .releasing)
            thread.join()
        }
        while id.load(ordering: .acquiring) == 0 {}
        return body(id.load(ordering: .acquiring))
    }

    @Test(arguments: [true, false]) func `a thread waits in a function of the kernel, or runs`(isWaiting: Bool) throws {
        func look(at thread: Int32) -> ThreadProbe? {
            guard let probe = try? ThreadProbe(thread: thread), let first = probe.read() else { return nil }
            #expect(
                eventually {
                    guard let reading = probe.read(), reading.time > first.time else { return false }
                    let isInFutex = reading.waitChannel?.hasPrefix("futex") == true
                    return isWaiting
                        ? isInFutex && reading.state == UInt8(ascii: "S")
                        : reading.isRunnable && reading.waitChannel == nil && reading.onCPU > first.onCPU
                })
            return probe
        }
        let probe = try isWaiting ? ProbedThread.run(isWaiting: true, look) : whileComputing(look)
        #expect(eventually { probe?.read() == nil }, "the thread has ended")
        #expect(probe?.kernelStack() == nil)
        #expect(throws: CaptureFailure.noSuchThread) { try ThreadProbe(thread: .max) }
    }

    /// The files of a thread that ends during a reading look empty.
    @Test func `a reading of a thread that ends is whole or nil`() throws {
        for _ in 0..<300 {
            let id = Atomic<Int32>(0)
            let mayEnd = Atomic<Bool>(false)
            let thread = try WorkerThread(name: "ends") {
                id.store(clinux_gettid(), ordering: .releasing)
                while !mayEnd.load(ordering: .acquiring) {}
            }
            while id.load(ordering: .acquiring) == 0 {}
            let files = try ThreadProbe(thread: id.load(ordering: .acquiring))
            var last = try #require(files.read())
            mayEnd.store(true, ordering: .releasing)
            while let reading = files.read() {
                let grows = reading.minorFaults >= last.minorFaults && reading.slices >= last.slices
                #expect(grows && reading.voluntarySwitches != nil)
                last = reading
            }
            thread.join()
        }
    }
}

@Suite struct ThreadReadingTests {
    @Test(
        arguments: [
            (40, 0, "R", false), (30, 10, "R", false),
            // It waited for a CPU, which a stop would take away.
            (29, 11, "R", true),
            // A wait that still lasts is not counted yet.
            (4, 0, "R", true), (5, 0, "R", false),
            // A stop costs a blocked thread no CPU.
            (0, 0, "S", false),
        ] as [(UInt64, UInt64, Character, Bool)])
    func `a thread competes if it wants a CPU and had it for little of the time`(
        cpu: UInt64, queue: UInt64, state: Character, competes: Bool
    ) {
        func reading(_ time: UInt64, _ cpu: UInt64, _ queue: UInt64) -> ThreadReading {
            var reading = ThreadReading(time: time, onCPU: cpu)
            (reading.runQueue, reading.state) = (queue, state.asciiValue ?? 0)
            return reading
        }
        #expect(reading(140, 20 + cpu, 5 + queue).competes(since: reading(100, 20, 5)) == competes)
    }
}

@Suite struct EpollWaitTests {
    #if arch(x86_64)
        private static let number = 232
    #else
        private static let number = 22
    #endif

    private static func call(
        _ number: Int = number, descriptor: UInt64 = 4, timeout: UInt64 = 0xffff_ffff
    ) -> SystemCall {
        SystemCall(
            number: number, arguments: [descriptor, 0x7fbc_1d0c_1ec4, 1, timeout, 0, 0],
            stackPointer: 0x7fbc_1d0c_1e80, programCounter: 0x7fbc_1d1c_ef36)
    }

    @Test func `a wait without an end is recognized`() {
        #expect(
            EpollWait(Self.call())
                == EpollWait(descriptor: 4, stackPointer: 0x7fbc_1d0c_1e80, programCounter: 0x7fbc_1d1c_ef36))
    }

    @Test(arguments: [call(0), call(timeout: 0), call(timeout: 100), call(descriptor: 0x1_ffff_ffff)])
    func `anything else is not`(call: SystemCall) {
        #expect(EpollWait(call) == nil)
    }

    @Test func `a thread in epoll_wait is read again and again`() throws {
        let loop = try EpollThread()
        let probe = try ThreadProbe(thread: loop.thread, files: .syscall)
        let place = try #require(loop.place())
        #expect(place.descriptor == loop.descriptor)
        #expect(probe.epollWait() == place)
        loop.send()
        #expect(eventually { probe.epollWait() == place })
        loop.stop()
        #expect(eventually { probe.epollWait() == nil })
    }

    @Test func `a thread that waits for something else does not`() throws {
        let place = try ProbedThread.run(isWaiting: true) { thread in
            try? ThreadProbe(thread: thread, files: .syscall).epollWait()
        }
        #expect(place == nil)
    }
}
