import Dispatch
import Foundation
import Glibc

// Async functions, tasks and main actors, whose frames the compiler splits at each suspension.

@MainActor
private final class Library {
    static let shared = Library()
    var count = 0

    @inline(never)
    func sortBooks() {
        let end = DispatchTime.now() + stallLength
        while DispatchTime.now() < end { count &+= (0..<5_000).map { ($0 &* 7_919) % 5_003 }.sorted()[7] }
        finish()
    }
}

@MainActor
@inline(never)
private func reloadLibrary() async {
    await Task.yield()
    usleep(stallMicroseconds)
    finish()
    await Task.yield()
}

@MainActor
@inline(never)
private func collectResults() async {
    await withTaskGroup(of: Int.self) { group in
        for number in 0..<2 { group.addTask { number } }
        for await number in group where number == 1 {
            usleep(stallMicroseconds)
            finish()
        }
    }
    finish()
}

@MainActor
@inline(never)
private func readStream() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    continuation.yield(1)
    continuation.finish()
    for await number in stream {
        usleep(stallMicroseconds)
        use(number)
        finish()
    }
}

private protocol Loader: Sendable {
    @MainActor func load() async throws -> Int
}

private struct SlowLoader: Loader {
    @MainActor
    @inline(never)
    func load() async throws -> Int {
        try await Task.sleep(nanoseconds: 1_000_000)
        usleep(stallMicroseconds)
        finish()
        return 1
    }
}

@inline(never)
private func startTask() {
    Task { @MainActor in
        usleep(stallMicroseconds)
        finish()
    }
}

@inline(never)
private func fireTimer() {
    _ = Timer.scheduledTimer(withTimeInterval: 0.01, repeats: false) { _ in
        usleep(stallMicroseconds)
        finish()
    }
    finish()
}

@inline(never)
private func waitForRequest() {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = bind(listener, $0, length)
            _ = listen(listener, 1)
            _ = getsockname(listener, $0, &length)
            _ = connectAndWait($0, length)
        }
    }
    close(listener)
    finish()
}

/// The server never answers; the receive times out.
@inline(never)
private func connectAndWait(_ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int {
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(client) }
    var timeout = timeval(tv_sec: 0, tv_usec: Int(stallMicroseconds))
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    _ = connect(client, address, length)
    var byte: UInt8 = 0
    let count = recv(client, &byte, 1, 0)
    finish()
    return count
}

let concurrencyStalls = [
    LabeledStall("method of a main actor's singleton", culprit: "sortBooks", .computing) {
        Task { await Library.shared.sortBooks() }
    },
    LabeledStall("async function after a suspension", culprit: "reloadLibrary", .sleeping) {
        Task { await reloadLibrary() }
    },
    LabeledStall("loop over a task group", culprit: "collectResults", .sleeping) { Task { await collectResults() } },
    LabeledStall("loop over an AsyncStream", culprit: "readStream", .sleeping) { Task { await readStream() } },
    LabeledStall("async protocol witness", culprit: "load", .sleeping) {
        let loader: any Loader = SlowLoader()
        Task { use(try await loader.load()) }
    },
    LabeledStall("closure of a task", culprit: "startTask", .sleeping) { startTask() },
    LabeledStall("closure of a timer", culprit: "fireTimer", .sleeping) { fireTimer() },
    LabeledStall("recv with a time limit", culprit: "connectAndWait", [.io, .syscall]) { waitForRequest() },
]
