// Functions that leave no frame in an optimized build, for a scenario and for a test that compiles this file.
import Glibc
import TailCalls

@inline(never) func nap() { usleep(120 &* unit) }
@inline(never) func waitForEvents() -> Int32 { poll(nil, 0, Int32(120 &* unit / 1_000)) }
@inline(never) func readMessage(_ socket: Int32, _ buffer: UnsafeMutableRawPointer) -> Int { read(socket, buffer, 8) }
@inline(never) func takeLock(_ mutex: UnsafeMutablePointer<pthread_mutex_t>) -> Int32 { pthread_mutex_lock(mutex) }

/// Recursion that becomes a loop, and then a jump.
@inline(never) func countDown(_ count: Int, _ time: UInt32) -> Int32 {
    count == 0 ? usleep(time) : countDown(count &- 1, time ^ 1)
}

@inline(never) func load(_ name: String, _ read: @convention(c) (Int) -> Int) -> Int { read(name.utf8.count &* 40) }
@inline(never) func twice(_ time: Int, _ body: (Int) -> Int) -> Int { body(time) }
@inline(never) func retry(_ body: (Int) -> Void, _ count: Int) { body(count) }

final class Archive {
    var rows = 10
    @inline(never) func compact() -> Int { doze(rows &* 12) }
    @inline(never) static func vacuum(_ rows: Int) -> Int { doze(rows &* 11) }
}
