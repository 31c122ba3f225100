import Glibc
import StallReports
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture

@Suite struct CUnwindEngineTests {
    /// The number of files that are open for each thread: schedstat, status, stat, syscall and wchan.
    private static let filesEach = 5

    /// Whether one of the threads has its files open; tests beside this one look at all threads for a moment.
    private func areOpenOnce(_ threads: Set<Int32>) -> Bool {
        func isOfThread(_ file: DirectoryEntry) -> Bool {
            let parts = readLink("/proc/self/fd/\(file.name)")?.split(separator: "/") ?? []
            return parts.dropLast().last.flatMap { Int32($0) }.map(threads.contains) ?? false
        }
        return eventually { directoryEntries("/proc/self/fd")?.count(where: isOfThread) == Self.filesEach }
    }

    @Test func `a read begins with the reading that it gets`() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let thread = try EpollThread()
        let probe = try ThreadProbe(thread: thread.thread)
        #expect(areOpenOnce([thread.thread]))
        #expect(
            eventually {
                guard let reading = probe.read(),
                    let stack = try? capture.capture(probe, at: reading, mayStop: false, mayWait: false)
                else { return false }
                return stack.method == .read && stack.reading == reading
            })
        thread.stop()
        #expect(eventually { probe.read() == nil })
    }

    @Test func `a capture of another thread leaves no file open`() throws {
        let capture = ThreadCapture(engine: try CUnwindEngine())
        let threads = try (0..<62).map { _ in try EpollThread() }
        let probe = try ThreadProbe(thread: threads[0].thread)
        for thread in threads where thread.place() != nil { _ = try capture.capture(thread: thread.thread) }
        #expect(areOpenOnce(Set(threads.map(\.thread))), "those of \(probe.thread)")
        for thread in threads { thread.stop() }
    }

    /// Its id is not in `WorkerThread.ids` at its very beginning and end.
    @Test func `a monitor's thread is known by its stack`() throws {
        func stack(of thread: Int32) -> CapturedStack? {
            WorkerThread.value { try? ThreadCapture(engine: CUnwindEngine()).capture(thread: thread) } ?? nil
        }
        let own = try EpollThread()
        defer { own.stop() }
        #expect(eventually { stack(of: own.thread)?.isOfMonitor == true })
        let test = try #require(ownThread())
        #expect(eventually { stack(of: test)?.isOfMonitor == false })
    }

    #if arch(x86_64)
        /// The numbers of calls (asm/unistd_64.h).
        private static let calls = (read: 0, write: 1, writev: 20, fallocate: 285)
    #else
        /// The numbers of calls (asm-generic/unistd.h).
        private static let calls = (read: 63, write: 64, writev: 66, fallocate: 47)
    #endif

    @Test func `a stop would end a write and a read of a socket`() throws {
        let engine = try CUnwindEngine()
        let probe = try ThreadProbe(ofThisThread: .stat)
        var pipeEnds: [Int32] = [-1, -1], socketEnds: [Int32] = [-1, -1]
        defer { for end in pipeEnds + socketEnds { close(end) } }
        try #require(pipe(&pipeEnds) == 0)
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &socketEnds) == 0)
        func isEnded(_ number: Int, _ descriptor: UInt64) -> Bool {
            var reading = ThreadReading(time: 1, onCPU: 1)
            reading.state = UInt8(ascii: "S")
            reading.shown = .waiting(
                SystemCall(number: number, arguments: [descriptor], stackPointer: 8, programCounter: 8))
            return engine.status(of: probe, at: reading).isInterruptedByStop
        }
        let pipeEnd = UInt64(pipeEnds[1]), socketEnd = UInt64(socketEnds[0])
        // It may have written a part of its bytes.
        #expect(isEnded(Self.calls.write, pipeEnd) && isEnded(Self.calls.writev, pipeEnd))
        #expect(isEnded(Self.calls.fallocate, pipeEnd))
        #expect(isEnded(Self.calls.read, socketEnd))
        // The upper half of the register says nothing about the descriptor.
        #expect(isEnded(Self.calls.read, socketEnd | 7 << 32))
        #expect(!isEnded(Self.calls.read, UInt64(pipeEnds[0])))
    }
}

@Suite struct CaptureProbeTests {
    @Test func `the results agree with the engine's own probe`() throws {
        let mayUsePtrace = try CUnwindEngine().probeStop()
        let outcomes = CaptureProbe.outcomes()
        #expect(Set(outcomes.keys) == [.read, .ptrace, .signal, .processVMReadv, .libunwind])
        #expect(outcomes[.read] == .works())
        #expect((outcomes[.ptrace] == .works()) == mayUsePtrace)
        #expect((outcomes[.signal] == .notTried("not used where ptrace works")) == mayUsePtrace)
        #expect(outcomes[.processVMReadv] != .missing("memory cannot be read"))
    }

    @Test func `a capturer knows without a trial what it may do`() throws {
        let (known, tried) = (ThreadCapture(engine: try CUnwindEngine()).outcomes, CaptureProbe.outcomes())
        #expect((known[.ptrace] == .works()) == (tried[.ptrace] == .works()))
        #expect(known[.libunwind] == tried[.libunwind] && known[.processVMReadv] == tried[.processVMReadv])
        // Neither a signal nor a read is tried.
        #expect((known[.signal] == nil) == (known[.ptrace] != .works()) && known[.read] == nil)
    }

    /// The system may refuse a thread at one call, and not at the next one.
    @Test func `only what could be tried is kept`() {
        let known = CaptureProbe.Known()
        var attempts = 0
        func outcomes(isWhole: Bool) -> CaptureProbe.Outcomes {
            known.outcomes {
                attempts += 1
                return ([.read: isWhole ? .works() : .missing("no thread")], isWhole)
            }
        }
        #expect(outcomes(isWhole: false) == [.read: .missing("no thread")])
        #expect(outcomes(isWhole: true) == [.read: .works()])
        #expect(outcomes(isWhole: false) == [.read: .works()])
        #expect(attempts == 2)
    }
}

@Suite struct CapturedFrameTests {
    @Test(arguments: [(0x1000, false, 0xfff), (0x1000, true, 0x1000), (0, false, 0)] as [(UInt64, Bool, UInt64)])
    func `a return address is looked up inside the call`(address: UInt64, isExact: Bool, lookedUp: UInt64) {
        #expect(CapturedFrame(address: address, isExact: isExact).lookupAddress == lookedUp)
    }
}

@Suite struct ImageListTests {
    private let low = LoadedImage.stub(path: "/opt/notes/bin/notes", addresses: 0x1000..<0x2000)
    private let middle = LoadedImage.stub(path: "/lib/libc.so.6", addresses: 0x2000..<0x2800)
    private let high = LoadedImage.stub(path: "linux-vdso.so.1", addresses: 0xf000..<0xf001)

    @Test func theImageThatContainsAnAddressIsFound() {
        let list = ImageList([high, low, middle])
        #expect(list.images == [low, middle, high])
        #expect(list.image(at: 0xfff) == nil)
        #expect(list.image(at: 0x1000) == low)
        #expect(list.image(at: 0x1fff) == low)
        #expect(list.image(at: 0x2000) == middle)
        #expect(list.image(at: 0x27ff) == middle)
        #expect(list.image(at: 0x2800) == nil, "a gap")
        #expect(list.image(at: 0xf000) == high)
        #expect(list.image(at: 0xf001) == nil)
        #expect(list.image(at: 0) == nil)
        #expect(list.image(at: .max) == nil)
    }

    @Test func addressesAreFoundInManyImages() {
        let images = (0..<200).map { index in
            LoadedImage.stub(path: "/lib/\(index).so", addresses: UInt64(index) * 0x100..<UInt64(index) * 0x100 + 0x80)
        }
        let list = ImageList(images.reversed())
        for (index, image) in images.enumerated() {
            #expect(list.image(at: UInt64(index) * 0x100) == image)
            #expect(list.image(at: UInt64(index) * 0x100 + 0x7f) == image)
            #expect(list.image(at: UInt64(index) * 0x100 + 0x80) == nil)
        }
    }

    @Test func anEmptyImageContainsNoAddress() {
        #expect(ImageList().image(at: 0x1000) == nil)
        #expect(ImageList([.stub(path: "/lib/empty.so", addresses: 0x10..<0x10)]).image(at: 0x10) == nil)
    }

    @Test func theNameIsThePathsLastPart() {
        #expect(low.name == "notes")
        #expect(high.name == "linux-vdso.so.1")
        #expect(LoadedImage.stub(path: "", addresses: 0..<1).name == "")
    }
}
