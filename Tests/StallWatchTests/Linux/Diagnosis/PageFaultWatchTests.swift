import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct PageFaultWatchTests {
    @Test func aMissingThreadIsNotWatched() throws {
        let standardInput = try #require(FileStatus(descriptor: STDIN_FILENO))
        #expect(PageFaultWatch(thread: .max) == nil)
        // A failed watch must close nothing: its descriptor is 0, which is standard input.
        #expect(FileStatus(descriptor: STDIN_FILENO)?.identity == standardInput.identity)
    }

    /// Skipped where the kernel does not report faults or the file cannot be dropped from memory.
    @Test(.enabled(if: mayWatchFaults, "needs perf_event_open(2)"))
    func theFileOfAFaultIsNamed() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/pages"
        let size = 4 << 20
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        try #require(pwrite(file, [UInt8](repeating: 7, count: size), size, 0) == size && fsync(file) == 0)
        posix_fadvise(file, 0, size, Int32(POSIX_FADV_DONTNEED))
        let pages = try #require(mmap(nil, size, PROT_READ, MAP_SHARED, file, 0))
        defer { munmap(pages, size) }
        madvise(pages, size, Int32(MADV_RANDOM))
        let thread = try #require(readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) })
        let watch = try #require(PageFaultWatch(thread: thread))
        let before = try #require(ThreadProc(thread: thread)?.read())
        var sum = 0
        // More faults than the ring has room for: the newest records count.
        for page in stride(from: 0, to: size, by: 4096) { sum += Int(pages.load(fromByteOffset: page, as: UInt8.self)) }
        let after = try #require(ThreadProc(thread: thread)?.read())
        #expect(sum == 7 * size / 4096)
        watch.read()
        #expect(watch.file == (after.majorFaults > before.majorFaults ? path : nil))
    }
}

/// Whether the kernel reports this process's page faults to it.
private let mayWatchFaults =
    readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) }.flatMap(PageFaultWatch.init) != nil
