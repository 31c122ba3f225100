import Glibc
import Testing

@testable import StackCapture
@testable import StallWatch

/// With the libraries of this process.
@Suite struct WaitFunctionNamesTests {
    private let images: ImageList
    private let names = WaitFunctionNames()

    init() throws {
        images = try ThreadCapture(engine: CUnwindEngine()).images()
        names.prepare(for: images)
    }

    /// What a frame in the middle of an exported function of the library is named.
    private func named(_ function: String, of library: String = "libc.so.6") throws -> NamedFrame? {
        // The library's own: a sanitizer has functions of the same names in the executable.
        let handle = try #require(dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
        defer { dlclose(handle) }
        let start = try #require(dlsym(handle, function))
        return names.names(of: [.init(address: UInt64(UInt(bitPattern: start)) + 1, isExact: true)], in: images).first
    }

    @Test(
        arguments: [
            "pthread_mutex_lock", "pthread_cond_wait", "sem_wait", "fsync", "pread64", "syscall", "clock_nanosleep",
            "poll",
        ])
    func aFunctionOfLibcThatWaitsHasItsName(function: String) throws {
        let frame = try #require(try named(function))
        #expect(frame.image == "libc.so.6")
        // Of the names of one function, any: pread64 is pread as well.
        #expect(frame.function == function || frame.function.map { $0 + "64" } == function)
        #expect(frame.libcFunction == frame.function)
    }

    @Test(arguments: ["dispatch_semaphore_wait", "dispatch_group_wait"])
    func aFunctionOfDispatchThatWaitsHasItsName(function: String) throws {
        #expect(
            try named(function, of: "libdispatch.so") == NamedFrame(function: function, image: "libdispatch.so"))
    }

    @Test(arguments: ["strtol", "qsort", "getenv"])
    func aFunctionThatTellsNothingHasNone(function: String) throws {
        let frame = try #require(try named(function))
        #expect(frame == NamedFrame(function: nil, image: "libc.so.6"))
    }

    @Test func whatIsInNoImageHasNone() {
        #expect(names.names(of: [.init(address: 0x10, isExact: true)], in: images) == [.init(function: nil, image: "")])
    }

    @Test func onlyTheInnermostAreNamed() {
        let frames = [CapturedStack.Frame](repeating: .init(address: 0x10, isExact: true), count: 100)
        #expect(names.names(of: frames, in: images).count == WaitFunctionNames.innermost)
    }
}
