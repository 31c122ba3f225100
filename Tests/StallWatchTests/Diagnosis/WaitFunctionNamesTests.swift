import Glibc
import Testing

@testable import StallWatch

/// With the libraries of this process.
@Suite struct WaitFunctionNamesTests {
    private let images: ImageList
    private let names = WaitFunctionNames()

    init() throws {
        images = try ThreadCapture(engine: CUnwindEngine()).images()
        names.prepare(for: images)
    }

    /// What a frame in the middle of an exported function is named.
    private func named(_ function: String) throws -> NamedFrame? {
        let start = try #require(dlsym(nil, function))
        return names.names(of: [.init(address: UInt64(UInt(bitPattern: start)) + 1, isExact: true)], in: images).first
    }

    @Test(arguments: ["pthread_mutex_lock", "pthread_cond_wait", "sem_wait", "fsync", "pread64", "syscall"])
    func aFunctionOfLibcThatWaitsHasItsName(function: String) throws {
        let frame = try #require(try named(function))
        #expect(frame.image == "libc.so.6")
        // Of the names of one function, any: pread64 is pread as well.
        #expect(frame.function == function || frame.function.map { $0 + "64" } == function)
        #expect(frame.libcFunction == frame.function)
    }

    @Test(arguments: ["dispatch_semaphore_wait", "dispatch_group_wait"])
    func aFunctionOfDispatchThatWaitsHasItsName(function: String) throws {
        #expect(try named(function) == NamedFrame(function: function, image: "libdispatch.so"))
    }

    @Test(arguments: ["strtol", "qsort", "dispatch_async"])
    func aFunctionThatTellsNothingHasNone(function: String) throws {
        let frame = try #require(try named(function))
        #expect(frame.function == nil)
        #expect(frame.image.hasPrefix("lib"))
    }

    @Test func whatIsInNoImageHasNone() {
        #expect(names.names(of: [.init(address: 0x10, isExact: true)], in: images) == [.init(function: nil, image: "")])
    }

    @Test func onlyTheInnermostAreNamed() {
        let frames = [CapturedStack.Frame](repeating: .init(address: 0x10, isExact: true), count: 100)
        #expect(names.names(of: frames, in: images).count == WaitFunctionNames.innermost)
    }
}
