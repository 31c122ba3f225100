import Glibc
import StackCapture
import LinuxSupport

extension SystemCall {
    private static let reading: Set<String> = ["read", "readv", "preadv2", "recvfrom", "recvmsg", "recvmmsg"]
    private static let writing: Set<String> = ["write", "writev", "pwritev2", "sendto", "sendmsg", "sendmmsg"]
    /// F_OFD_SETLKW of fcntl.h.
    private static let setOpenFileLock: UInt64 = 38

    /// The only child that the call waits for; `nil` if it waits for any, or for none.
    var awaitedChild: Int32? {
        let (kind, number) = name == "waitid" ? (argument(0), argument(1)) : (1, argument(0))
        switch kind {
        // P_PID
        case 1:
            let process = Int32(truncatingIfNeeded: number)
            return process > 0 ? process : nil
        // P_PIDFD
        case 3:
            guard var info = readSmallFile("/proc/self/fdinfo/\(number)").map(ByteCursor.init),
                info.skip(pastLinePrefix: "Pid:")
            else { return nil }
            return info.number().flatMap(Int32.init(exactly:))
        default: return nil
        }
    }

    /// The process group for a child of which the call waits; `nil` if it waits for another child, or for none.
    var awaitedGroup: Int32? {
        let isID = name == "waitid"
        let number = Int32(truncatingIfNeeded: argument(isID ? 1 : 0))
        // P_PGID is 2.
        if isID, argument(0) != 2 { return nil }
        // The caller's own group.
        if number == 0 { return getpgrp() }
        return isID ? number : number < -1 && number > .min ? -number : nil
    }

    /// Returns whether the descriptor of the call in which a thread waits is another file's by now.
    ///
    /// Another thread has closed it, and its number was given again. Where that file is of the same kind, nothing shows it.
    func hasLostFile(of thread: Int32) -> Bool {
        let (reads, writes) = (Self.reading.contains(name), Self.writing.contains(name))
        // The target of sendto(2) may be the address in its arguments.
        guard reads || writes || ["accept", "accept4"].contains(name), name != "sendto" || argument(4) == 0 else {
            return false
        }
        let descriptor = Int32(truncatingIfNeeded: argument(0))
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, let file = FileFamily(of: descriptor) else { return false }
        // Such a call fails at once.
        if reads && flags & O_ACCMODE == O_WRONLY || writes && flags & O_ACCMODE == O_RDONLY { return true }
        let channel = readSmallFile("/proc/self/task/\(thread)/wchan").flatMap(WaitChannel.function(in:))
        return channel.map(file.isRuledOut) ?? false
    }

    /// Returns the only descriptor that the call transfers data through or polls, and whether it waits to read.
    func transfer(_ memory: any MemoryReading) -> (descriptor: Int32, reads: Bool)? {
        let descriptor = Int32(truncatingIfNeeded: argument(0))
        if Self.reading.contains(name) { return (descriptor, true) }
        if Self.writing.contains(name) { return (descriptor, false) }
        guard ["poll", "ppoll"].contains(name), argument(1) == 1,
            let polled = memory.integers(at: argument(0), count: 2)
        else { return nil }
        // struct pollfd: an int, and two shorts, of which the first are the events. POLLOUT is 4.
        return (polled[0], polled[1] & 4 == 0)
    }

    /// Returns the request for a file lock that a call of flock(2) or fcntl(2) of this `process` makes.
    func lockRequest(of process: Int32, inode: UInt64?, _ memory: any MemoryReading) -> FileLockRequest {
        guard name == "fcntl" else {
            // LOCK_EX is 2.
            return FileLockRequest(.flock, isExclusive: argument(1) & 2 != 0, of: process, inode: inode)
        }
        let isOfOpenFile = argument(1) == Self.setOpenFileLock
        // struct flock: the type and the origin, shorts; the start and the length, after four bytes of padding.
        let words = (0..<3).map { memory.word(at: argument(2) &+ $0 * 8) ?? 0 }
        var request = FileLockRequest(
            isOfOpenFile ? .openFile : .process,
            // F_WRLCK is 1.
            isExclusive: words[0] & 0xffff == 1, of: isOfOpenFile ? -1 : process, inode: inode)
        // From the beginning of the file, and forward. A length of 0 reaches to the end.
        let (first, length) = (words[1], words[2])
        if words[0] >> 16 & 0xffff == 0, Int64(bitPattern: first) >= 0, Int64(bitPattern: length) >= 0 {
            request.bytes = length == 0 ? first ... .max : first...(first + length - 1)
        }
        return request
    }
}
