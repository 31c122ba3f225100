import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// A function that is not exported and not wrapped by another one.
@inline(never) private func functionThatIsNotExported(_ value: Int32) -> Int32 {
    value &+ 1
}

@Suite struct SymbolTableSymbolicatorTests {
    private let symbolicator = Symbolicator(.names)

    private func symbol(at offset: UInt64, in image: LoadedImage) -> String? {
        symbolicator.symbol(at: offset, in: ImageIdentity(image))
    }

    /// Returns the image that contains `pointer`, and the pointer's virtual address in the image's file.
    private func place(of pointer: UnsafeRawPointer) throws -> (image: LoadedImage, offset: UInt64) {
        let address = UInt64(UInt(bitPattern: pointer))
        let image = try #require(try CUnwindEngine().images().image(at: address))
        return (image, address - image.base)
    }

    /// The executable's symbol table names a private function; dladdr(3) does not.
    @Test func aPrivateFunctionOfThisExecutableIsNamed() throws {
        let function: @convention(c) (Int32) -> Int32 = functionThatIsNotExported
        let (image, offset) = try place(of: unsafeBitCast(function, to: UnsafeRawPointer.self))
        #expect(image.isExecutable)
        let found = try #require(symbol(at: offset, in: image))
        #expect(found.contains("functionThatIsNotExported"))
        #expect(Demangler.functionName(found).contains("functionThatIsNotExported"))
    }

    @Test func evictedImagesAreReadAgain() throws {
        let directory = try TemporaryDirectory()
        let images = try (0..<Symbolicator.maximumOpenImages + 10).map { index in
            let elf = SmallELF(symbols: [.init(name: "function\(index)", address: 0x1000)])
            let path = try directory.write("\(index).so", elf.bytes)
            var image = LoadedImage.stub(path: path, addresses: 0..<1)
            image.contentHash = try ELFFile(path: path).contentHash().flatMap { UInt64($0, radix: 16) }
            return image
        }
        for _ in 0..<2 {
            for (index, image) in images.enumerated() {
                #expect(symbol(at: 0x1000, in: image) == "function\(index)")
            }
        }
    }
}

@Suite struct CapabilityProbeTests {
    private func probe(
        _ symbolication: SymbolicationSettings = .lines, unflushed: [String]? = []
    ) -> CapabilityProbe {
        CapabilityProbe(symbolication: symbolication, unflushed: unflushed)
    }

    @Test func `every feature is tried or says why not`() {
        let capabilities = probe().capabilities(loadsLibrary: true)
        #expect(capabilities.features.map(\.name) == Capabilities.FeatureName.known)
        for feature in capabilities.features {
            #expect(feature.state != .notTried || feature.name == .signal, "\(feature)")
        }
        #expect(capabilities[.read]?.state == .works)
        #expect(capabilities[.status]?.state == .works)
        #expect(capabilities.environment.pid == getpid())
    }

    @Test func `the start tries nothing, and says what it knows`() {
        var probe = probe(unflushed: ["/a: fsync: no"])
        probe.captures = [.ptrace: .missing()]
        let known = probe.known
        #expect(known.missing.map(\.name).prefix(2) == [.ptrace, .flush])
        let tried: [Capabilities.FeatureName] = [.read, .signal, .syscall, .status, .pageFaults, .symbols, .libdw]
        for name in tried { #expect(known[name]?.detail == "not tried", "\(name.rawValue)") }
    }

    @Test func `a monitor that runs tries no capture again`() {
        var probe = probe()
        probe.captures = [.ptrace: .missing(), .signal: .works()]
        let found = probe.capabilities(loadsLibrary: false)
        #expect(found[.ptrace]?.state == .missing && found[.signal]?.state == .works)
        #expect(found[.libunwind]?.state == .notTried && found[.read]?.state == found[.syscall]?.state)
    }

    @Test func `flushing is what the stores have found`() {
        #expect(probe(unflushed: nil).capabilities(loadsLibrary: false)[.flush]?.state == .notTried)
        #expect(probe(unflushed: []).capabilities(loadsLibrary: false)[.flush]?.state == .works)
        let refused = probe(unflushed: ["/a: fsync: no", "/b: fsync: no"]).capabilities(loadsLibrary: false)[.flush]
        #expect(refused?.state == .missing)
        #expect(refused?.detail == "/a: fsync: no, /b: fsync: no")
    }

    @Test func `without symbolication nothing is lost by a missing libdw`() {
        let capabilities = probe(.none).capabilities(loadsLibrary: true)
        for name in [Capabilities.FeatureName.libdw, .symbols, .debugInformation] {
            #expect(capabilities[name]?.state == .notTried)
        }
    }
}

@Suite struct TerminationLogTests {
    private func ongoing() throws -> StallReport {
        var report = try StallReport.literal()
        report.state = .ongoing
        return report
    }

    @Test func `the message has the sentence, the cause and the report`() throws {
        var report = try ongoing()
        report.cause = .fixture(kind: .lock, summary: "Blocked in pthread_mutex_lock.")
        #expect(
            String(decoding: TerminationLog.message(report), as: UTF8.self) == """
                main stalled and has not come back after 812 ms in NoteStore.save(_:) (timer)
                  why  Blocked in pthread_mutex_lock.
                  try  If NoteStore.save(_:) waits for a result, let its thread call back (DispatchQueue.main.async); \
                if for a lock, shorten its section. Which it is, while it lasts: stallwatch stacks \
                \(report.process.pid).
                report: \(report.fileName)

                """)
    }

    @Test func `a message has at most 4096 bytes, and whole characters`() throws {
        var report = try ongoing()
        report.loop.label = String(repeating: "ä", count: 5_000)
        let message = TerminationLog.message(report)
        #expect(message.count == 4_096)
        #expect(String(validating: message, as: UTF8.self) != nil)
    }

    @Test func `it replaces what is in the file`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("log", String(repeating: "old", count: 3_000))
        let identity = FileStatus(path: path)?.identity
        #expect(TerminationLog(FixedFile(path)).write(Array("new\n".utf8)) == nil)
        #expect(AtomicFile.read(path, limit: 1 << 20) == Array("new\n".utf8))
        #expect(FileStatus(path: path)?.identity == identity, "a mounted file cannot be replaced by another one")
        #expect(TerminationLog(FixedFile(directory.path("made"))).write([]) == nil)
        #expect(directory.names == ["log", "made"])
    }

    /// As on a file system that hangs.
    @Test func `while a write does not return there is no other one`() {
        let (isOver, texts) = (Semaphore(), Collected<[UInt8]>())
        let log = TerminationLog("log", within: 100_000_000) { bytes in
            texts.add(bytes)
            isOver.wait()
            return nil
        }
        for byte in [UInt8(1), 2] {
            #expect(log.write([byte])?.message == "the termination log log took too long: name a file on another disk")
        }
        let isWritten = eventually {
            // For the write that goes on, and for this one.
            for _ in 0..<2 { isOver.post() }
            return log.write([3]) == nil
        }
        #expect(isWritten && !texts.all.contains([2]))
    }

    @Test func `a file that cannot be written is an error and no wait`() throws {
        let directory = try TemporaryDirectory()
        mkfifo(directory.path("fifo"), 0o600)
        // A wait would be another error.
        for path in [directory.path("fifo"), directory.path("no/log"), directory.path] {
            let error = try #require(TerminationLog(FixedFile(path)).write([1]))
            #expect(error.message == "the termination log \(path) cannot be opened: name a file that may be written")
        }
    }
}
