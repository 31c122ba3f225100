import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// The kernel's wait channel and stack of a waiting thread.
@Suite struct KernelSideTests {
    /// The state shared by a test and its thread.
    private final class Subject: Sendable {
        let id = Atomic<Int32>(0)
        let isOver = Atomic<Bool>(false)
    }

    /// Runs a thread and passes its kernel id to the test.
    private func withThread<Result>(
        _ body: @escaping @Sendable (Subject) -> Void, _ use: (Int32) throws -> Result, end: () -> Void = {}
    ) throws -> Result {
        let subject = Subject()
        let thread = try WorkerThread(name: "test-subject") {
            let number = readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) }
            subject.id.store(number ?? -1, ordering: .releasing)
            body(subject)
        }
        defer {
            subject.isOver.store(true, ordering: .relaxed)
            end()
            thread.join()
        }
        try #require(eventually { subject.id.load(ordering: .acquiring) != 0 })
        return try use(subject.id.load(ordering: .acquiring))
    }

    /// Passes the files of a thread that is blocked in a read of an empty pipe.
    private func whileReadingAPipe<Result>(_ use: (ThreadProbe) throws -> Result) throws -> Result {
        var ends: [Int32] = [-1, -1]
        // The read ends when the last copy of the write end is closed, so no other test's child may inherit one.
        try #require(pipe(&ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        return try withThread(
            { _ in
                var byte: UInt8 = 0
                read(readEnd, &byte, 1)
            },
            { thread in
                let files = try ThreadProbe(thread: thread)
                #expect(
                    eventually {
                        if case .waiting(let call)? = files.read()?.activity { call.name == "read" } else { false }
                    }
                )
                return try use(files)
            }, end: { close(writeEnd) }
        )
    }

    @Test func theWaitChannelIsTheFunctionThatWaits() throws {
        try whileReadingAPipe { files in
            let reading = try #require(files.read())
            // pipe_read before Linux 6.14, anon_pipe_read since.
            #expect(reading.waitChannel?.hasSuffix("pipe_read") == true, "\(reading)")
            #expect(reading.state == UInt8(ascii: "S"))
        }
    }

    @Test(.enabled(if: mayReadKernelStacks, "needs CAP_SYS_ADMIN"))
    func theKernelStackIsInnermostFirst() throws {
        try whileReadingAPipe { files in
            let stack = try #require(files.kernelStack())
            #expect(stack.contains { $0.hasSuffix("pipe_read") }, "\(stack)")
            #expect(stack.allSatisfy { !$0.contains("+") && !$0.contains(" ") })
        }
    }

    @Test(arguments: [false, true])
    func `a reading after the end of the turn is no observation`(isOver: Bool) throws {
        let start = monotonicNow()
        try whileReadingAPipe { files in
            let recorder = TurnRecorder(alarm: WatchdogAlarm())
            var diagnostician = StallDiagnostician(
                threads: ProcessThreads(capturer: FixedCapturer(.failure(.moved))), waits: recorder.waits
            )
            let first = diagnostician.read(files.thread)
            #expect(first != nil)
            let observed = diagnostician.observeLate(files.thread, nil, stack: nil, isFirst: true, earlier: [])
            let kept = diagnostician.kept(
                try #require(observed), stack: nil, start: start, isFirst: true, end: isOver ? start + 1 : nil)
            let cause = diagnostician.cause(files.thread, start: start, kept)
            #expect(cause != nil)
            #expect(cause?.observation?.call?.name == (isOver ? nil : "read"))
        }
    }

    @Test func aRunningThreadHasNoWaitChannel() throws {
        try withThread({ subject in while !subject.isOver.load(ordering: .relaxed) {} }) { thread in
            let files = try ThreadProbe(thread: thread)
            #expect(eventually { files.read()?.activity == .running })
            #expect(eventually { files.read().map { $0.waitChannel == nil && $0.isRunnable } ?? false })
        }
    }

    @Test(arguments: ["schedstat", "stat", "status", "syscall", "wchan", "stack"], [true, false])
    func `a missing or empty file costs only what no other file shows`(name: String, isEmpty: Bool) throws {
        try whileReadingAPipe { files in
            let whole = try #require(files.read())
            let process = try TemporaryDirectory()
            let directory = process.path("task/\(files.thread)")
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            for file in ["schedstat", "stat", "status", "syscall", "wchan", "stack"] where file != name || isEmpty {
                try FileManager.default.createSymbolicLink(
                    atPath: "\(directory)/\(file)",
                    withDestinationPath: file == name ? "/dev/null" : "/proc/self/task/\(files.thread)/\(file)"
                )
            }
            let others = try ThreadProbe(thread: files.thread, process: process.path)
            var reading = try #require(others.read())
            var expected = whole
            switch name {
            case "schedstat": (expected.runQueue, expected.slices) = (0, 0)
            case "stat":
                (expected.minorFaults, expected.majorFaults) = (0, 0)
                (expected.userTicks, expected.systemTicks, expected.nice) = (0, 0, nil)
            case "status": (expected.voluntarySwitches, expected.involuntarySwitches) = (nil, nil)
            case "syscall": expected.shown = nil
            case "wchan": expected.waitChannel = nil
            default: #expect(others.kernelStack() == nil)
            }
            reading.time = whole.time
            #expect(reading == expected)
        }
    }

    @Test func anEndedThreadHasNoReading() throws {
        let files = try whileReadingAPipe { $0 }
        #expect(eventually { files.read() == nil })
        #expect(files.kernelStack() == nil)
    }
}

/// Whether this process may read a thread's kernel stack.
private let mayReadKernelStacks = readSmallFile("/proc/thread-self/stack") != nil
