import CStalls
import CoreFoundation
import Foundation
import Glibc
import StallWatch

// Functions that wait for another process. The rules in Stalls.swift apply.

@inline(never)
func waitForTheOtherProcess(_ file: LockFile) {
    flock(file.descriptor, LOCK_EX)
    flock(file.descriptor, LOCK_UN)
}

@inline(never)
func waitForTheRecordLock(_ file: LockFile) {
    var whole = flock()
    whole.l_type = Int16(F_WRLCK)
    _ = fcntl(file.descriptor, F_SETLKW, &whole)
    errno = 0
}

@inline(never)
func receiveFromThePeer(_ connection: PeerConnection) {
    var byte: UInt8 = 0
    while recv(connection.descriptor, &byte, 1, 0) < 0, errno == EINTR {}
    close(connection.descriptor)
}

@inline(never)
func readFromTheChild(_ connection: PeerConnection) {
    var bytes: [UInt8] = [0, 0]
    while read(connection.descriptor, &bytes, 2) < 0, errno == EINTR {}
    close(connection.descriptor)
}

@inline(never)
func closeWithUnsentData(_ data: UnsentData) {
    close(data.sender)
    errno = 0
}

extension Scenario {
    /// Stalls that wait for another process, or for a thread that does; the report must name that process and its
    /// activity.
    static let peerScenarios: [Scenario] = [
        .inMainLoop(
            "flock-of-child", "flock(2) on a file that a child has locked",
            .main(.timer, in: "waitForTheOtherProcess(_:)", lock: .file).waiting(for: .holder, in: "clock_nanosleep"),
            with: { try LockFile(STALLS_PEER_FLOCK, in: $0) }, end: { $0.peer.finish() }
        ) { file, _ in waitForTheOtherProcess(file) },
        .inMainLoop(
            "record-lock-of-child", "fcntl(2) with F_SETLKW on a file that a child has locked",
            .main(.mainQueue, in: "waitForTheRecordLock(_:)", lock: .file).waiting(for: .holder, in: "clock_nanosleep"),
            with: { try LockFile(STALLS_PEER_RECORD_LOCK, in: $0) }, end: { $0.peer.finish() }
        ) { file, _ in waitForTheRecordLock(file) },
        .inMainLoop(
            "socket-to-child", "recv(2) from a Unix socket whose other end a child has",
            .main(.source0, in: "receiveFromThePeer(_:)", cause: "io").waiting(for: .otherEnd, in: "clock_nanosleep"),
            with: {
                try PeerConnection(STALLS_PEER_WRITER, in: $0, for: $0.stall) {
                    socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &$0)
                }
            }, end: { $0.peer.finish() }
        ) { connection, _ in receiveFromThePeer(connection) },
        .inMainLoop(
            "pipe-of-child", "read(2) of a pipe that a child has open for writing",
            .main(.performedBlock, in: "readFromTheChild(_:)", cause: "io")
                .waiting(for: .writer, in: "clock_nanosleep"),
            with: { try PeerConnection(STALLS_PEER_WRITER, in: $0, for: $0.stall) { pipe(&$0) } },
            end: { $0.peer.finish() }
        ) { connection, _ in readFromTheChild(connection) },
        .inMainLoop(
            "stdio-lock", "puts(3) while another thread prints to a full pipe, which a child reads late",
            .main(.timer, in: "stalls_print_line", lock: .stdio, owner: "printer", ownerDoes: "write")
                .waiting(for: .reader, in: "clock_nanosleep"),
            with: { try BlockedOutput(in: $0) }, end: { $0.restore() }
        ) { _, _ in stalls_print_line() },
        .inMainLoop(
            "linker-lock", "dl_iterate_phdr(3) while another thread sleeps in its callback",
            .owned(
                .source0, in: "stalls_with_loader_lock", .dynamicLinker, by: "lister",
                does: HolderActivity.sleeping.activity),
            with: { context in
                NamedThread.start("lister") { ready in
                    withoutActuallyEscaping(ready) { sleepWithLoaderLock(for: context.stall, ready: $0) }
                }
            }
        ) { _, _ in stalls_with_loader_lock({ _ in }, nil) },
        .inMainLoop(
            "linger", "close(2) of a socket with unsent data",
            .main(.mainQueue, in: "closeWithUnsentData(_:)", cause: "io", call: "close(descriptor "),
            with: { try UnsentData(for: $0.stall) }
        ) { data, _ in closeWithUnsentData(data) },
    ]
}
