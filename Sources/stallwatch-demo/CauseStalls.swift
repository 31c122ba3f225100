import Dispatch
import Foundation
import Glibc

// Functions that stall for one cause each. As in the other stalls: none is inlined, and none ends with the call that waits.

/// Copies memory in the kernel.
@inline(never)
func copyInTheKernel(for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    var bytes = [UInt8](repeating: 0, count: 16 << 20)
    let zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC)
    while DispatchTime.now().uptimeNanoseconds < end { read(zeros, &bytes, bytes.count) }
    close(zeros)
}

/// Asks the kernel for random bytes.
@inline(never)
func askForRandomBytes(for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    var bytes = [UInt8](repeating: 0, count: 4 << 20)
    let source = open("/dev/urandom", O_RDONLY | O_CLOEXEC)
    while DispatchTime.now().uptimeNanoseconds < end { read(source, &bytes, bytes.count) }
    close(source)
}

/// Waits for a queue to be done.
@inline(never)
func waitForTheQueue(_ queue: DispatchQueue) {
    queue.sync {}
    errno = 0
}

/// Sleeps in usleep(3).
@inline(never)
func sleepInMicroseconds(for duration: Duration) {
    usleep(UInt32(duration.milliseconds * 1000))
    errno = 0
}

/// Writes a file to the disk again and again.
@inline(never)
func synchronize(_ file: ScratchFile, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let block = [UInt8](repeating: 8, count: 1 << 20)
    repeat {
        for offset in stride(from: 0, to: file.size, by: block.count) {
            pwrite(file.descriptor, block, block.count, offset)
        }
        fsync(file.descriptor)
    } while DispatchTime.now().uptimeNanoseconds < end
}

/// Reads a FIFO that nobody writes to in time.
@inline(never)
func readTheFIFO(_ fifo: EmptyFIFO) {
    var byte: UInt8 = 0
    read(fifo.readEnd, &byte, 1)
    errno = 0
}

/// Connects to a socket that takes no more connections.
@inline(never)
func connectTo(_ server: BusyServer) {
    connect(
        server.client, UnsafeRawPointer(server.address).assumingMemoryBound(to: sockaddr.self), server.addressLength)
    errno = 0
}

/// Asks a name server that does not answer, as a resolver does: sends a datagram and polls for the answer.
@inline(never)
func askTheNameServer(_ server: SilentServer, for duration: Duration) {
    server.send()
    var wanted = pollfd(fd: server.client, events: Int16(POLLIN), revents: 0)
    poll(&wanted, 1, Int32(duration.milliseconds))
    errno = 0
}

/// Waits for a file lock.
@inline(never)
func waitForTheFileLock(_ lock: HeldFileLock) {
    flock(lock.descriptor, LOCK_EX)
    flock(lock.descriptor, LOCK_UN)
}

/// Reads a file through memory, page by page, in an order that no read-ahead follows.
@inline(never)
func touchThePages(of file: ScratchFile, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let count = file.size / 4096
    var sum: UInt8 = 0
    repeat {
        // Only clean pages that no mapping has can be dropped.
        posix_fadvise(file.descriptor, 0, file.size, Int32(POSIX_FADV_DONTNEED))
        guard let pages = mmap(nil, file.size, PROT_READ, MAP_SHARED, file.descriptor, 0), pages != MAP_FAILED else {
            return
        }
        madvise(pages, file.size, Int32(MADV_RANDOM))
        var page = 1
        var left = count
        while left > 0, DispatchTime.now().uptimeNanoseconds < end {
            page = (page &* 1_664_525 &+ 1_013_904_223) % count
            sum &+= pages.load(fromByteOffset: page * 4096, as: UInt8.self)
            left &-= 1
        }
        munmap(pages, file.size)
    } while DispatchTime.now().uptimeNanoseconds < end
    errno = Int32(sum)
}

/// Computes for half of the time, by the thread's own clock, and sleeps for the other half.
@inline(never)
func computeAndSleep(for duration: Duration) {
    var start = timespec()
    var now = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
    repeat {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    } while Double(now.tv_sec - start.tv_sec) * 1e3 + Double(now.tv_nsec - start.tv_nsec) / 1e6 < duration.milliseconds
        / 2
    usleep(UInt32(duration.milliseconds * 500))
    errno = 0
}
