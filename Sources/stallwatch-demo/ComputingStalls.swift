import Foundation
import Glibc

// Stalls in which the main thread computes, or would if it could.

func compute(for duration: Duration) {
    let end = ContinuousClock.now + duration
    var value: UInt64 = 1
    while ContinuousClock.now < end {
        for _ in 0..<10_000 { value = value &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
    }
    errno = Int32(truncatingIfNeeded: value)
}

func computeAmongRivals(for duration: Duration) {
    for _ in 0..<8 * ProcessInfo.processInfo.activeProcessorCount {
        Thread.detachNewThread { compute(for: duration) }
    }
    compute(for: duration)
}

/// Reads a mapped file page by page, in an order that the kernel does not foresee.
func useMappedFile(for duration: Duration) throws {
    let file = try ScratchFile(megabytes: 64)
    let end = ContinuousClock.now + duration
    var page = 1
    var sum: UInt8 = 0
    while ContinuousClock.now < end {
        // The kernel drops only pages that are on the disk and in no mapping.
        posix_fadvise(file.descriptor, 0, file.size, Int32(POSIX_FADV_DONTNEED))
        guard let pages = mmap(nil, file.size, PROT_READ, MAP_SHARED, file.descriptor, 0), pages != MAP_FAILED else {
            return
        }
        madvise(pages, file.size, Int32(MADV_RANDOM))
        for _ in 0..<1_000 where ContinuousClock.now < end {
            page = (page &* 1_664_525 &+ 1_013_904_223) % (file.size / 4_096)
            sum &+= pages.load(fromByteOffset: page * 4_096, as: UInt8.self)
        }
        munmap(pages, file.size)
    }
    errno = Int32(sum)
}

/// A file in the current directory, on the disk and without a name.
final class ScratchFile {
    let descriptor: Int32
    let size: Int

    init(megabytes: Int) throws {
        var path = Array("stallwatch-demo-XXXXXX".utf8CString)
        descriptor = mkstemp(&path)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        unlink(path)
        size = megabytes << 20
        let block = [UInt8](repeating: 7, count: 1 << 20)
        for index in 0..<megabytes { pwrite(descriptor, block, block.count, index << 20) }
        fsync(descriptor)
    }

    deinit { close(descriptor) }
}
