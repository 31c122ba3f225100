import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallSymbols
@testable import StallWatch

/// The fingerprint of one path through a program that is rebuilt after changes to other code.
@Suite struct FingerprintRebuildTests {
    @Test func `a rebuild that leaves the path alone keeps the fingerprint`() throws {
        let scratch = try TemporaryDirectory()
        let first = try path(in: scratch, name: "first", before: "", after: "")
        let second = try path(
            in: scratch, name: "second",
            before: """
                public struct Added { public var values: [Int]; public func sum() -> Int { values.reduce(0) { $0 + $1 } } }
                public func another<T: Comparable>(_ list: [T]) -> T? { list.max { $0 < $1 } }
                """,
            after: "print(Added(values: [1, 2]).sum(), another([1, 2]) ?? 0)"
        )
        let renamed = try path(in: scratch, name: "renamed", before: "", after: "", leaf: "other")
        #expect(first.contains("leaf(_:)"), "\(first)")
        #expect(fingerprint(first) == fingerprint(second))
        #expect(fingerprint(first) != fingerprint(renamed))
    }

    private func fingerprint(_ path: [String]) -> String {
        Fingerprint(loop: .runLoop, paths: [path.map { Fingerprint.Place(name: $0, isFunction: true) }]).text
    }

    /// Builds and runs the program; returns the functions of the stack that it prints, innermost first.
    private func path(
        in scratch: TemporaryDirectory, name: String, before: String, after: String, leaf: String = "leaf"
    ) throws -> [String] {
        let source = """
            @_silgen_name("backtrace")
            func backtrace(_ addresses: UnsafeMutableRawPointer, _ count: Int32) -> Int32
            @_silgen_name("backtrace_symbols_fd")
            func backtrace_symbols_fd(_ addresses: UnsafeMutableRawPointer, _ count: Int32, _ descriptor: Int32)
            \(before)
            @inline(never) public func \(leaf)(_ depth: Int) -> Int {
                var addresses = [UnsafeMutableRawPointer?](repeating: nil, count: 32)
                let count = backtrace(&addresses, 32)
                backtrace_symbols_fd(&addresses, count, 1)
                return Int(count) + depth
            }
            public final class Store {
                public var saved = 0
                public init() {}
                @inline(never) public func save<T: BinaryInteger>(_ value: T, _ body: (Int) -> Int) { saved = body(Int(value)) + 1 }
            }
            @inline(never) public func work(_ store: Store, _ depth: Int) {
                store.save(UInt8(depth)) { number in \(leaf)(number) + 1 }
                print(store.saved)
            }
            work(Store(), 3)
            \(after)
            """
        let file = scratch.path + "/\(name).swift"
        try AtomicFile.write(Array(source.utf8), to: file)
        let program = scratch.path + "/\(name)"
        try run("swiftc", ["-O", "-module-name", "app", "-Xlinker", "--export-dynamic", file, "-o", program])
        let lines = try run(program, []).split(separator: "\n").filter { $0.contains("\(name)(") }
        // A line is `program(symbol+0x1f) [0x55…]`.
        return lines.compactMap { line in
            guard let open = line.firstIndex(of: "("), let plus = line.lastIndex(of: "+"), open < plus else {
                return nil
            }
            let symbol = String(line[line.index(after: open)..<plus])
            return symbol.isEmpty ? nil : Demangler.functionName(symbol)
        }
    }

    @discardableResult private func run(_ program: String, _ arguments: [String]) throws -> String {
        try Command(program: "/usr/bin/env", arguments: [program] + arguments).succeed()
    }
}

/// A function that is not exported and not wrapped by another one.
@inline(never) private func functionThatIsNotExported(_ value: Int32) -> Int32 {
    value &+ 1
}

@Suite struct SymbolTableSymbolicatorTests {
    private let symbolicator = Symbolicator(.names)

    private func symbol(at offset: UInt64, in image: LoadedImage) -> String? {
        symbolicator.symbol(
            at: offset,
            in: ImageIdentity(path: image.path, buildID: image.buildIDText, isOwnExecutable: image.isExecutable)
        )
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

    @Test func aFunctionOfALibraryIsNamed() throws {
        let (image, offset) = try place(of: try #require(dlsym(nil, "CFRunLoopGetMain")))
        #expect(!image.isExecutable)
        #expect(symbol(at: offset, in: image) == "CFRunLoopGetMain")
        #expect(symbol(at: .max, in: image) == nil)
    }

    @Test func anImageWithoutAFileHasNoNames() {
        let image = LoadedImage.stub(path: "linux-vdso.so.1", addresses: 0..<1)
        #expect(symbol(at: 0x100, in: image) == nil)
        #expect(symbol(at: 0x100, in: image) == nil)
    }

    @Test func evictedImagesAreReadAgain() throws {
        let directory = try TemporaryDirectory()
        let images = try (0..<Symbolicator.maximumOpenImages + 10).map { index in
            let elf = SmallELF(symbols: [.init(name: "function\(index)", address: 0x1000)])
            return LoadedImage.stub(path: try directory.write("\(index).so", elf.bytes), addresses: 0..<1)
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

    @Test func `capabilities are readable before, during and after a run`() throws {
        let monitor = try StallMonitor(.init(outputs: []))
        let before = monitor.checkCapabilities()
        try monitor.start()
        #expect(monitor.checkCapabilities().features.map(\.state) == before.features.map(\.state))
        monitor.stop()
        #expect(monitor.checkCapabilities().features.map(\.state) == before.features.map(\.state))
        #expect(before[.flush]?.state == .notTried)
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
                Blocked in pthread_mutex_lock.
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
        #expect(TerminationLog.writeInTime(Array("new\n".utf8), to: path) == nil)
        #expect(AtomicFile.read(path, limit: 1 << 20) == Array("new\n".utf8))
        #expect(FileStatus(path: path)?.identity == identity, "a mounted file cannot be replaced by another one")
        #expect(TerminationLog.writeInTime([], to: directory.path("made")) == nil)
        #expect(directory.names == ["log", "made"])
    }

    @Test func `a file that cannot be written is an error and no wait`() throws {
        let directory = try TemporaryDirectory()
        mkfifo(directory.path("fifo"), 0o600)
        let begun = monotonicNow()
        for path in [directory.path("fifo"), directory.path("no/log"), directory.path] {
            let error = try #require(TerminationLog.writeInTime([1], to: path))
            #expect(error.message == "the termination log \(path) cannot be opened: name a file that may be written")
        }
        #expect(monotonicNow() - begun < TerminationLog.timeLimit)
    }
}
