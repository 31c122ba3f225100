import LinuxSupport
import Testing

@testable import StackCapture
@testable import StallWatch

@Suite struct AskedCallsTests {
    /// A struct timespec at every address, of some milliseconds, which the kernel may write over.
    private final class Time: MemoryReading {
        var milliseconds: UInt64 = 600

        func bytes(at address: UInt64, count: Int) -> [UInt8]? {
            littleEndian(address % 16 == 0 ? 0 : milliseconds * 1_000_000)
        }
    }

    private func call(_ name: String, remaining: UInt64 = 0x1000, stackPointer: UInt64 = 0x7000) throws -> SystemCall {
        SystemCall(
            number: try #require(SystemCallNames.current.number(of: name)), arguments: [0, 0, 0x1000, remaining, 0, 0],
            stackPointer: stackPointer, programCounter: 0x4000)
    }

    private func reading(_ call: SystemCall?, switches: UInt64 = 1) -> ThreadReading {
        var reading = ThreadReading(time: 0, onCPU: 0)
        (reading.shown, reading.voluntarySwitches) = (call.map(ThreadActivity.waiting) ?? .running, switches)
        return reading
    }

    @Test func `a sleep keeps the time that it asked for after a stop`() throws {
        let (time, sleep) = (Time(), try call("clock_nanosleep"))
        let asked = AskedCalls(memory: time)
        var first = reading(sleep)
        asked.look(at: &first, of: 7)
        time.milliseconds = 37
        var later = reading(try call("restart_syscall"))
        asked.look(at: &later, of: 7)
        #expect(later.shown == .waiting(sleep), "the system call is not lost either")
        #expect(asked.describe(sleep, of: 7).target == "600 ms")
        // The next sleep at the same place.
        asked.look(at: &first, of: 7)
        #expect(asked.describe(sleep, of: 7).target == "37 ms")
    }

    @Test func `a time that may be what remained is not read`() throws {
        let asked = AskedCalls(memory: Time())
        var first = reading(try call("restart_syscall"))
        asked.look(at: &first, of: 7)
        #expect(first.shown == .waiting(try call("restart_syscall")))
        #expect(asked.describe(try call("clock_nanosleep"), of: 7).target == nil)
        #expect(asked.describe(try call("clock_nanosleep", remaining: 0x2000), of: 7).target == "600 ms")
    }

    /// A signal from elsewhere stopped it before a look: it is seen as a restarted call, at the same place.
    @Test func `a second sleep has its own time`() throws {
        let (time, sleep) = (Time(), try call("clock_nanosleep", remaining: 0))
        let asked = AskedCalls(memory: time)
        var first = reading(sleep)
        asked.look(at: &first, of: 7)
        time.milliseconds = 90
        var second = reading(try call("restart_syscall", remaining: 0))
        asked.look(at: &second, of: 7)
        #expect(asked.describe(try #require(second.shown?.call), of: 7).target == "90 ms")
    }

    @Test func `another wait is not the one that was asked for`() throws {
        let asked = AskedCalls(memory: Time())
        var first = reading(try call("clock_nanosleep"))
        asked.look(at: &first, of: 7)
        for (thread, stackPointer) in [(8, 0x7000), (7, 0x7100)] as [(Int32, UInt64)] {
            var other = reading(try call("restart_syscall", stackPointer: stackPointer))
            asked.look(at: &other, of: thread)
            #expect(other.shown?.call?.isRestarted == true)
        }
    }

    @Test func `the switches of a stop are known`() throws {
        let before = reading(try call("clock_nanosleep"), switches: 5)
        #expect(reading(try call("restart_syscall"), switches: 7).switches(ofStopSince: before) == 2)
        #expect(reading(nil, switches: 7).switches(ofStopSince: before) == 1, "it has waited itself, too")
        #expect(reading(nil, switches: 6).switches(ofStopSince: reading(nil, switches: 5)) == 1)
        #expect(reading(nil, switches: 5).switches(ofStopSince: reading(nil, switches: 5)) == 0)
    }
}
