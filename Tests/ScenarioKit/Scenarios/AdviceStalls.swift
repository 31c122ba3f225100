import Dispatch
import Foundation
import Glibc

// Functions that stall for the causes of which one rule says what to do. The rules in Stalls.swift apply.

/// Sleeps for a millisecond at a time, as a function does that waits until a variable has changed.
@inline(never)
func lookAgainAndAgain(for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    while DispatchTime.now().uptimeNanoseconds < end { usleep(1_000) }
    errno = 0
}

/// Reads blocks of a file that is not in memory, in an order that defeats read-ahead.
@inline(never)
func readTheBlocks(of file: ScratchFile, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = file.size / bytes.count
    var block = 1
    repeat {
        posix_fadvise(file.descriptor, 0, file.size, Int32(POSIX_FADV_DONTNEED))
        posix_fadvise(file.descriptor, 0, file.size, Int32(POSIX_FADV_RANDOM))
        var left = count
        while left > 0, DispatchTime.now().uptimeNanoseconds < end {
            block = (block &* 1_664_525 &+ 1_013_904_223) % count
            pread(file.descriptor, &bytes, bytes.count, block * bytes.count)
            left &-= 1
        }
    } while DispatchTime.now().uptimeNanoseconds < end
}

/// Writes blocks of a file, each of which has to reach the disk.
@inline(never)
func writeTheBlocks(of file: ScratchFile, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let path = "/proc/self/fd/\(file.descriptor)"
    let descriptor = open(path, O_WRONLY | O_DSYNC | O_CLOEXEC)
    let bytes = [UInt8](repeating: 9, count: 4096)
    var offset = 0
    repeat {
        pwrite(descriptor, bytes, bytes.count, offset)
        offset = (offset + bytes.count) % file.size
    } while DispatchTime.now().uptimeNanoseconds < end
    close(descriptor)
}

@inline(never)
func decodeTheTable(_ json: Data, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    var rows = 0
    while DispatchTime.now().uptimeNanoseconds < end {
        rows += (try? JSONDecoder().decode([[String: Double]].self, from: json))?.count ?? 0
    }
    errno = Int32(truncatingIfNeeded: rows)
}

let largeTable = Data("[\(Array(repeating: #"{"x":1.5,"y":2.5,"z":3.5}"#, count: 2_000).joined(separator: ","))]".utf8)

/// Looks for nested repetitions, which takes exponential time.
@inline(never)
func matchTheText(for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let text = String(repeating: "a", count: 16) + "!"
    let expression = try? NSRegularExpression(pattern: "^(a+)+$")
    var matches = 0
    while DispatchTime.now().uptimeNanoseconds < end {
        matches += expression?.numberOfMatches(in: text, range: NSRange(text.startIndex..., in: text)) ?? 0
    }
    errno = Int32(truncatingIfNeeded: matches)
}

@inline(never)
func searchTheText(for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let text = String(repeating: "needlf ", count: 2_000)
    var found = 0
    while DispatchTime.now().uptimeNanoseconds < end { found += text.contains("needle") ? 1 : 0 }
    errno = Int32(truncatingIfNeeded: found)
}

/// A picture in the format PNG, and the system's libpng.
///
/// `@unchecked Sendable`: nothing changes after `init`.
final class Picture: @unchecked Sendable {
    private typealias Begin = @convention(c) (UnsafeMutableRawPointer, UnsafeRawPointer, Int) -> Int32
    private typealias Read =
        @convention(c) (
            UnsafeMutableRawPointer, UnsafeRawPointer?, UnsafeMutableRawPointer, Int32, UnsafeMutableRawPointer?
        ) -> Int32
    private typealias Write =
        @convention(c) (
            UnsafeMutableRawPointer, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>, Int32, UnsafeRawPointer,
            Int32, UnsafeRawPointer?
        ) -> Int32

    private static let side = 512
    private let begin: Begin
    private let read: Read
    private var file: [UInt8]
    /// Four bytes each.
    private var pixels = (0..<4 * side * side).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5) }

    init() throws(NotAvailable) {
        guard let library = dlopen("libpng16.so.16", RTLD_NOW),
            let write = dlsym(library, "png_image_write_to_memory"), let read = dlsym(library, "png_image_finish_read"),
            let begin = dlsym(library, "png_image_begin_read_from_memory")
        else { throw NotAvailable(reason: "libpng is not installed") }
        self.begin = unsafeBitCast(begin, to: Begin.self)
        self.read = unsafeBitCast(read, to: Read.self)
        file = [UInt8](repeating: 0, count: 2 * pixels.count)
        var (image, count) = (Self.image, file.count)
        guard unsafeBitCast(write, to: Write.self)(&image, &file, &count, 0, pixels, 0, nil) != 0 else {
            throw NotAvailable(reason: "libpng cannot make a picture")
        }
    }

    /// A png_image of this size: a pointer, the version 1, the size, the format RGBA, and what libpng stores there.
    private static var image: [UInt32] {
        [0, 0, 1, UInt32(side), UInt32(side), 3] + [UInt32](repeating: 0, count: 20)
    }

    @inline(never)
    func decode(for duration: Duration) {
        let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
        var done = 0
        while DispatchTime.now().uptimeNanoseconds < end {
            var image = Self.image
            guard begin(&image, file, file.count) != 0 else { break }
            image[5] = 3
            done += Int(read(&image, nil, &pixels, 0, nil))
        }
        errno = Int32(truncatingIfNeeded: done)
    }

    @inline(never)
    func copy(for duration: Duration) {
        let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
        var copied = [UInt8](repeating: 0, count: pixels.count)
        while DispatchTime.now().uptimeNanoseconds < end { memcpy(&copied, pixels, pixels.count) }
        errno = Int32(copied[7])
    }
}
