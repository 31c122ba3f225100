// `struct timespec` belongs to whichever module the compiler loads first: Glibc, or CoreFoundation.
import CoreFoundation
import CStalls
import Dispatch
import Foundation
import Glibc

// Functions that stall for one cause each. The rules in Stalls.swift apply.

/// Reads a device whose bytes the kernel copies or computes.
@inline(never)
func readFromTheKernel(_ path: String, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    var bytes = [UInt8](repeating: 0, count: 4 << 20)
    let device = open(path, O_RDONLY | O_CLOEXEC)
    while DispatchTime.now().uptimeNanoseconds < end { read(device, &bytes, bytes.count) }
    close(device)
}

@inline(never)
func waitForTheQueue(_ queue: DispatchQueue) {
    queue.sync {}
    errno = 0
}

@inline(never)
func sleepInMicroseconds(for duration: Duration) {
    usleep(UInt32(duration.milliseconds * 1000))
    errno = 0
}

/// Flushes a written file to the disk, in small steps, until `duration` has passed.
@inline(never)
func synchronize(_ file: ScratchFile, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let block = [UInt8](repeating: 8, count: 4096)
    var offset = 0
    repeat {
        fsync(file.descriptor)
        pwrite(file.descriptor, block, block.count, offset)
        offset = (offset + block.count) % file.size
    } while DispatchTime.now().uptimeNanoseconds < end
}

@inline(never)
func connectTo(_ server: BusyServer) {
    connect(server.client, server.address.assumingMemoryBound(to: sockaddr.self), server.addressLength)
    errno = 0
}

@inline(never)
func lookUpAName(at server: SilentServer, for duration: Duration) {
    guard stalls_use_name_server(server.port, Int32(duration.seconds.rounded(.up))) else { return }
    var wanted = addrinfo()
    // Only one query: none for an IPv6 address.
    wanted.ai_family = AF_INET
    var found: UnsafeMutablePointer<addrinfo>?
    // The dot at the end keeps the resolver from appending the machine's search domains.
    if getaddrinfo("nobody.invalid.", nil, &wanted, &found) == 0 { freeaddrinfo(found) }
    stalls_use_own_name_servers()
}

@inline(never)
func waitForThePOSIXSemaphore(for duration: Duration) {
    var semaphore = sem_t()
    sem_init(&semaphore, 0, 0)
    var end = deadline(of: CLOCK_REALTIME, after: duration)
    while sem_timedwait(&semaphore, &end) != 0, errno == EINTR {}
    sem_destroy(&semaphore)
}

@inline(never)
func waitForTheFileLock(_ lock: HeldFileLock) {
    flock(lock.descriptor, LOCK_EX)
    flock(lock.descriptor, LOCK_UN)
}

/// Reads a mapped file page by page, in an order that defeats read-ahead.
@inline(never)
func touchThePages(of file: ScratchFile, for duration: Duration) {
    let end = DispatchTime.now().uptimeNanoseconds + UInt64(duration.milliseconds * 1_000_000)
    let count = file.size / 4096
    var sum: UInt8 = 0
    repeat {
        // The kernel drops only clean pages without a mapping.
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

/// Computes for half of the time, by the thread's CPU clock, and sleeps for the other half.
@inline(never)
func computeAndSleep(for duration: Duration) {
    var start = timespec()
    var now = timespec()
    let half = duration.milliseconds / 2
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
    repeat {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    } while Double(now.tv_sec - start.tv_sec) * 1e3 + Double(now.tv_nsec - start.tv_nsec) / 1e6 < half
    usleep(UInt32(half * 1_000))
    errno = 0
}
