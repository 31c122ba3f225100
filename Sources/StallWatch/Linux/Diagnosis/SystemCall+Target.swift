import Glibc
import LinuxSupport
import StackCapture
import StallReports

extension SystemCall {
    /// Describes the call's target: a file's path, a socket's peer, a sleep's length, a process; reads only, for 10 us.
    func target(memory: any MemoryReading) -> String? {
        let name = name
        if waitsForSignal { return DescribedCall.signal }
        switch name {
        case "nanosleep":
            return Self.duration(at: argument(0), memory)
        case "clock_nanosleep":
            // With TIMER_ABSTIME (1) the argument is a point in time, not a duration.
            return argument(1) & 1 == 0 ? Self.duration(at: argument(2), memory) : nil
        case "close":
            // The number is free from the beginning of the call on (close(2)), and may be another file's by now.
            return "descriptor \(Int32(truncatingIfNeeded: argument(0))), which is no longer open"
        case "dup2", "dup3":
            return "descriptor \(Int32(truncatingIfNeeded: argument(1))), whose earlier file it closes"
        case "wait4", "waitid":
            return awaitedChild.map(Self.awaited)
                ?? awaitedGroup.map { "any child of process group \($0)" } ?? "any child"
        case "poll", "ppoll":
            return Self.polled(at: argument(0), count: argument(1), memory)
        case "epoll_wait", "epoll_pwait":
            // Of a set without a time limit another thread may change what is watched.
            let (set, limit) = (Int32(truncatingIfNeeded: argument(0)), Int32(truncatingIfNeeded: argument(3)))
            let isEmpty = limit > 0 && Self.isEmptySet(EpollFiles.shared.text(of: set))
            return isEmpty ? DescribedCall.emptySet : Self.descriptor(argument(0))
        case "connect", "bind", "sendto":
            let (address, length) = name == "sendto" ? (argument(4), argument(5)) : (argument(1), argument(2))
            return SocketName.decode(memory.bytes(at: address, count: Int(min(length, 128))) ?? [])
                ?? Self.descriptor(argument(0))
        default:
            if let index = Self.paths[name] { return path(at: index, memory) }
            return Self.descriptors[name].flatMap { Self.descriptor(argument($0)) }
        }
    }

    /// Whether the first argument is the descriptor that the call waits on: not in calls that give it up (close(2)).
    var takesDescriptor: Bool {
        Self.descriptors[name] == 0 && Self.paths[name] == nil && !Self.givesUp.contains(name)
    }
    private static let givesUp: Set = ["close", "close_range", "dup2", "dup3"]

    /// Whether the call finds a file or uses an open one, which waits for its disk or server.
    static func takesFile(_ name: String) -> Bool { paths[name] != nil || descriptors[name] == 0 }

    /// Returns the index of an argument by the call, from lists of calls by that index.
    static func table(_ lists: [Int: String]) -> [String: Int] {
        lists.reduce(into: [:]) { table, list in
            for name in list.value.split(whereSeparator: \.isWhitespace) { table[String(name)] = list.key }
        }
    }

    /// Returns a path, below the directory of the descriptor before it; an empty one or none stands for that descriptor.
    private func path(at index: Int, _ memory: any MemoryReading) -> String? {
        let directory = index > 0 && Self.descriptors[name] != nil ? Self.descriptor(argument(index - 1)) : nil
        if argument(index) == 0 || memory.bytes(at: argument(index), count: 1) == [0] { return directory }
        guard let path = memory.string(at: argument(index)), !path.hasPrefix("/"), let directory,
            directory.hasPrefix("/")
        else { return memory.string(at: argument(index)) }
        return "\(directory)/\(path)"
    }

    /// Formats a struct timespec in milliseconds; `nil` if it cannot be read or is invalid.
    private static func duration(at address: UInt64, _ memory: any MemoryReading) -> String? {
        guard let seconds = memory.word(at: address), let nanoseconds = memory.word(at: address &+ 8),
            seconds < 1 << 40, nanoseconds < 1_000_000_000
        else { return nil }
        let microseconds = seconds * 1_000_000 + nanoseconds / 1_000
        return microseconds % 1_000 == 0 ? "\(microseconds / 1_000) ms" : "\(Double(microseconds) / 1_000) ms"
    }

    private static func awaited(_ process: Int32) -> String {
        guard let name = readSmallFile("/proc/\(process)/comm").map(firstLine) else { return "process \(process)" }
        return "process \(process) \"\(name)\""
    }

    /// Describes the first four descriptors of a poll(2) call: struct pollfd is an int and two shorts.
    private static func polled(at address: UInt64, count: UInt64, _ memory: any MemoryReading) -> String? {
        guard count > 0 else { return nil }
        let shown = min(count, 4)
        let names = (0..<shown).compactMap { index in
            memory.integer(at: address &+ index * 8).flatMap { descriptor(UInt64(UInt32(bitPattern: $0))) }
        }
        guard !names.isEmpty else { return nil }
        return names.joined(separator: ", ") + (count > shown ? " and \(count - shown) more" : "")
    }

    /// Whether an epoll instance watches no descriptor: its file in /proc/self/fdinfo has a line for each (proc_pid_fdinfo(5)).
    static func isEmptySet(_ lines: String?) -> Bool {
        lines.map { $0.contains("pos:") && !$0.contains("tfd:") } ?? false
    }

    /// Describes an open descriptor of this process: a path, a socket with its peer, a pipe.
    static func descriptor(_ argument: UInt64) -> String? {
        let number = Int32(truncatingIfNeeded: argument)
        guard number >= 0, let link = readLink("/proc/self/fd/\(number)") else { return nil }
        return link.hasPrefix("socket:") ? SocketName.peer(of: number) ?? link : link
    }
}

/// F_GETPIPE_SZ of fcntl(2).
let getPipeCapacity: Int32 = 1032

/// What kind of file a descriptor is of, as far as kernel functions in which threads wait tell it.
enum FileFamily: Equatable {
    case pipe, unixSocket, socket, other

    /// `nil` for a descriptor that is not open.
    init?(of descriptor: Int32) {
        guard fcntl(descriptor, F_GETFD) >= 0 else { return nil }
        if fcntl(descriptor, getPipeCapacity) > 0 {
            self = .pipe
        } else if UnixSocketPeer.isUnix(descriptor) {
            self = .unixSocket
        } else {
            self = readLink("/proc/self/fd/\(descriptor)")?.hasPrefix("socket:") == true ? .socket : .other
        }
    }

    /// Returns whether no call for this file waits in a kernel function (Linux 5.4 to 6.18); unknown functions rule out nothing.
    ///
    /// A call that waits for a page of its buffer is in a function of `other`: then it does not wait for its pipe or socket.
    func isRuledOut(by function: String) -> Bool {
        switch function.prefix(while: { $0 != "." }) {
        case "pipe_read", "pipe_write", "pipe_wait", "anon_pipe_read", "anon_pipe_write": self != .pipe
        case let name where name.hasPrefix("unix_"): self != .unixSocket
        case "sk_wait_data", "inet_csk_accept", "__skb_wait_for_more_packets": ![.socket, .unixSocket].contains(self)
        case "folio_wait_bit_common", "wait_on_page_bit_common", "request_wait_answer", "rpc_wait_bit_killable",
            "n_tty_read", "n_tty_write", "eventfd_read", "timerfd_read", "timerfd_read_iter", "inotify_read":
            self != .other
        default: false
        }
    }
}

enum SocketName {
    static func peer(of descriptor: Int32) -> String? {
        address(of: descriptor, by: getpeername).map { "socket to \($0)" }
            ?? address(of: descriptor, by: getsockname).map { "socket at \($0)" }
    }

    static func address(
        of descriptor: Int32,
        by ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> String? {
        var bytes = [UInt8](repeating: 0, count: MemoryLayout<sockaddr_storage>.size)
        var length = socklen_t(bytes.count)
        let status = bytes.withUnsafeMutableBytes { buffer -> Int32 in
            // A sockaddr_storage has room for every address, and the kernel writes at most `length` bytes.
            guard let address = buffer.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
            return ask(descriptor, address, &length)
        }
        guard status == 0 else { return nil }
        return decode(Array(bytes.prefix(Int(length))))
    }

    /// Formats a struct sockaddr: `127.0.0.1:80`, `[::1]:80`, a path; `nil` for others and for unnamed sockets.
    static func decode(_ bytes: [UInt8]) -> String? {
        guard bytes.count > 2 else { return nil }
        // The family is in host order, little-endian on both architectures; the port is in network order.
        let family = Int32(bytes[0]) | Int32(bytes[1]) << 8
        let port = bytes.count >= 4 ? UInt16(bytes[2]) << 8 | UInt16(bytes[3]) : 0
        switch family {
        case AF_INET where bytes.count >= 8:
            return bytes[4..<8].map(String.init).joined(separator: ".") + ":\(port)"
        case AF_INET6 where bytes.count >= 24:
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            guard inet_ntop(AF_INET6, Array(bytes[8..<24]), &text, socklen_t(text.count)) != nil else { return nil }
            let address = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return "[\(address)]:\(port)"
        case AF_UNIX:
            // A leading zero byte means the abstract namespace, written as @ like in ss(8).
            let name = bytes[2...]
            let isAbstract = name.first == 0
            let text = (isAbstract ? name.dropFirst() : name).prefix { $0 != 0 }
            guard !text.isEmpty else { return nil }
            return (isAbstract ? "@" : "") + String(decoding: text, as: UTF8.self)
        default:
            return nil
        }
    }
}

typealias DescribedCall = StallReport.SystemCall

extension DescribedCall {
    /// `memory` is `nil` if the thread has left the call, because its memory and descriptor may have changed since.
    init(_ call: SystemCall, memory: (any MemoryReading)?) {
        self.init(number: call.number, name: call.name, target: memory.flatMap { call.target(memory: $0) })
    }

    /// Describes the call that a running thread was captured in, or that its libc function makes; `nil` if unknown.
    init?(_ captured: CapturedCall, function: String?, memory: any MemoryReading) {
        guard let number = captured.number ?? function.flatMap(SystemCallNames.current.number(ofFunction:)) else {
            return nil
        }
        let call = SystemCall(number: number, arguments: captured.arguments, stackPointer: 0, programCounter: 0)
        self.init(call, memory: captured.hasReturned ? nil : memory)
        // By now the descriptor may be another file's, and a path overwritten.
        if captured.hasReturned, call.takesDescriptor { target = captured.target }
    }

    mutating func add(_ answer: PeerAnswer) {
        peers = answer.peers.isEmpty ? nil : answer.peers
        omittedPeers = answer.omitted == 0 ? nil : answer.omitted
        missingPeersReason = answer.reason
    }
}
