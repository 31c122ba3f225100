/// A lock of a file, as a line of /proc/locks or a `lock:` line of /proc/<pid>/fdinfo/<fd> shows it (proc_locks(5)).
package struct FileLock: Equatable, Sendable {
    package var kind: FileLockKind
    /// Whether this is a request that waits.
    package var isWaiting: Bool
    /// Whether no other lock may be held beside it: a lock for writing.
    package var isExclusive: Bool
    /// The process that made the lock; -1 for F_OFD_SETLK of fcntl(2), 0 for a process that /proc does not show.
    package var process: Int32
    /// The device's major and minor number.
    package var device: [UInt32]
    package var inode: UInt64
    package var bytes: ClosedRange<UInt64>

    /// Parses a line; `nil` for a lease that keeps no call waiting, and for text of another form.
    package init?(line: Substring) {
        var words = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)[...]
        if words.first == "lock:" { words.removeFirst() }
        guard let id = words.popFirst(), id.hasSuffix(":"), UInt64(id.dropLast()) != nil else { return nil }
        isWaiting = words.first == "->"
        if isWaiting { words.removeFirst() }
        let fields = Array(words)
        guard fields.count == 7, let kind = FileLockKind(rawValue: fields[0]),
            kind != .lease || fields[1] == "BREAKING", let process = Int32(fields[3]),
            let first = UInt64(fields[5]), let last = fields[6] == "EOF" ? .max : UInt64(fields[6]), first <= last
        else { return nil }
        // "00:2f:1234": the device in hexadecimal, the inode in decimal.
        let file = fields[4].split(separator: ":")
        guard file.count == 3, let major = UInt32(file[0], radix: 16), let minor = UInt32(file[1], radix: 16),
            let inode = UInt64(file[2])
        else { return nil }
        (self.kind, self.process, self.inode) = (kind, process, inode)
        isExclusive = fields[2] == "WRITE"
        device = [major, minor]
        bytes = first...last
    }

    /// The largest number of bytes read of /proc/locks: some 4,000 locks.
    package static let maximumText = 1 << 18

    /// Returns the locks and requests in the text of /proc/locks, or of a file in /proc/<pid>/fdinfo.
    package static func all(in text: String) -> [FileLock] {
        text.split(separator: "\n").compactMap { FileLock(line: $0) }
    }

    /// Returns the processes that have locks of a file, by its descriptors, and those that are only known as makers.
    ///
    /// The system tells the number of a lock's maker. A lock of an open file, as of flock(2), goes to each process that
    /// inherits the descriptor, and stays there when the maker closes its own or ends; the number may be given again.
    /// One of fcntl(2) with F_SETLK is the maker's own, so a maker that does not show its descriptors has it.
    package static func holders(
        of locks: [FileLock], in descriptors: [OpenDescriptor], refused: Set<Int32>
    ) -> (known: [Int32], makers: [Int32]) {
        let shown = descriptors.map { (process: $0.process, locks: all(in: $0.info)) }
        var (known, makers): ([Int32], [Int32]) = ([], [])
        for lock in locks {
            let processes = shown.filter { $0.locks.contains(lock) }.map { $0.process }
            let isOwn = lock.kind == .process && refused.contains(lock.process)
            if processes.contains(lock.process) || processes.isEmpty && isOwn {
                known.append(lock.process)
            } else if !processes.isEmpty {
                known += processes
            } else if lock.process > 0 {
                makers.append(lock.process)
            }
        }
        return (known.unique, makers.unique)
    }

    /// Whether it is of a file with this device and inode, as ``FileStatus/identity`` has them (gnu_dev_makedev(3)).
    package func isOf(_ file: [UInt64]) -> Bool {
        let major = file[0] >> 8 & 0xfff | file[0] >> 32 & ~0xfff
        let minor = file[0] & 0xff | file[0] >> 12 & ~0xff
        return device.map(UInt64.init) == [major, minor & 0xffff_ffff] && inode == file[1]
    }

    fileprivate func hasFile(of other: FileLock) -> Bool { device == other.device && inode == other.inode }
}

/// A request for a file lock, with what the waiting call shows of it.
package struct FileLockRequest: Hashable, Sendable {
    package var kind: FileLockKind
    package var isExclusive: Bool
    /// The process that waits; -1 for a lock of an open file.
    package var process: Int32
    package var inode: UInt64?
    package var bytes: ClosedRange<UInt64>?

    package init(
        _ kind: FileLockKind, isExclusive: Bool, of process: Int32, inode: UInt64? = nil,
        bytes: ClosedRange<UInt64>? = nil
    ) {
        (self.kind, self.isExclusive, self.process, self.inode, self.bytes) = (kind, isExclusive, process, inode, bytes)
    }

    /// Returns the locks in the text of /proc/locks that keep this request waiting.
    ///
    /// The text has the request itself, which tells the device. Where it is ambiguous, no lock is returned.
    package func holders(in text: String) -> [FileLock] {
        let all = FileLock.all(in: text)
        let own = all.filter { lock in
            lock.isWaiting && lock.kind == kind && lock.process == process && lock.isExclusive == isExclusive
                && inode.map { $0 == lock.inode } ?? true && bytes.map { $0 == lock.bytes } ?? true
        }
        guard let request = own.first, own.allSatisfy({ request.hasFile(of: $0) && request.bytes == $0.bytes }) else {
            return []
        }
        return all.filter { lock in
            !lock.isWaiting && lock.hasFile(of: request) && lock.kind.meets(kind)
                && (lock.isExclusive || isExclusive) && lock.bytes.overlaps(request.bytes)
                && !(kind == .process && lock.kind == .process && lock.process == process)
        }
    }
}

/// The call that a lock of a file was made with.
package enum FileLockKind: String, Sendable {
    /// flock(2).
    case flock = "FLOCK"
    /// fcntl(2) with F_SETLK: the process owns the lock.
    case process = "POSIX"
    /// fcntl(2) with F_OFD_SETLK: the open file owns the lock.
    case openFile = "OFDLCK"
    /// fcntl(2) with F_SETLEASE.
    case lease = "LEASE"

    /// Whether a lock of this kind can keep one of the other kind waiting.
    fileprivate func meets(_ other: FileLockKind) -> Bool {
        self != .lease && (self == .flock) == (other == .flock)
    }
}
