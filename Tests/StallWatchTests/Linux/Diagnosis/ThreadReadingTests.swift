import CLinux
import Synchronization
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

@Suite struct ThreadReadingTests {
    /// A thread that another monitor's capture has stopped outside of a call does not wait for a page.
    @Test func theWaitChannelConfirmsAPageFault() {
        #expect(activity(.faulting, "D", "folio_wait_bit_common") == .faulting)
        #expect(activity(.faulting, "t", "ptrace_stop") == .running)
        #expect(activity(.running, "R", nil) == .running)
    }

    @Test func `a thread competes if it wants a CPU and had it for little of the time`() {
        func competes(cpu: UInt64, queue: UInt64, state: Character = "R") -> Bool {
            reading(at: 140, cpu: 20 + cpu, queue: 5 + queue, state: state)
                .competes(since: reading(at: 100, cpu: 20, queue: 5, state: "R"))
        }
        #expect(!competes(cpu: 40, queue: 0))
        #expect(!competes(cpu: 30, queue: 10))
        #expect(competes(cpu: 29, queue: 11), "it waited for a CPU, which a stop would take away")
        #expect(competes(cpu: 4, queue: 0), "a wait that still lasts is not counted yet")
        #expect(!competes(cpu: 5, queue: 0), "it was blocked before")
        #expect(!competes(cpu: 0, queue: 0, state: "S"), "a stop costs a blocked thread no CPU")
        #expect(!reading(at: 140, cpu: 60, queue: 0).competes(since: reading(at: 140, cpu: 60, queue: 0)))
    }

    private func activity(_ shown: ThreadActivity?, _ state: Character, _ channel: String?) -> ThreadActivity {
        ThreadActivity(shown: shown, state: state.asciiValue ?? 0, waitChannel: channel)
    }

    @Test func `without the wait channel the state confirms a page fault`() {
        #expect(activity(.faulting, "D", nil) == .faulting, "Linux 5.4 and 5.10 show no function")
        #expect(activity(.faulting, "t", nil) == .running)
        #expect(activity(.faulting, "R", nil) == .running)
    }

    @Test func `without the call a waiting thread is blocked`() {
        for state in ["S", "D"] as [Character] {
            #expect(activity(nil, state, "futex_wait_queue") == .blocked)
            #expect(activity(nil, state, nil) == .blocked)
        }
        for state in ["R", "t", "Z"] as [Character] { #expect(activity(nil, state, nil) == .running) }
    }

    @Test func linesAreFoundByTheirBeginning() {
        var cursor = ByteCursor("nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\n")
        let isFound = cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:")
        let count = cursor.number()
        let isFoundAgain = cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:")
        #expect(isFound && count == 5 && !isFoundAgain)
    }

    @Test func tooLongNumbersAreNil() {
        var cursor = ByteCursor("99999999999999999999 0xfffffffffffffffff x")
        for _ in 0..<3 {
            let number = cursor.number()
            #expect(number == nil)
            cursor.skipWords(1)
        }
    }

    @Test func aLiveThreadHasReadings() throws {
        // The main thread lives as long as this test runs.
        let thread = try #require(ThreadIdentity.all().first)
        let files = try ThreadProbe(thread: thread)
        let first = try #require(files.read())
        let second = try #require(files.read())
        #expect(second.time > first.time)
        #expect(second.onCPU >= first.onCPU)
        let switches = try #require(first.voluntarySwitches)
        #expect(try #require(second.voluntarySwitches) >= switches)
    }

    @Test func aMissingThreadHasNoReadings() {
        for thread in [0, .max] as [Int32] {
            #expect(throws: CaptureFailure.noSuchThread) { try ThreadProbe(thread: thread) }
        }
    }

    /// The files of a thread that ends during a reading look empty.
    @Test func `a reading of a thread that ends is whole or nil`() throws {
        for _ in 0..<300 {
            let id = Atomic<Int32>(0)
            let mayEnd = Atomic<Bool>(false)
            let thread = try WorkerThread(name: "ends") {
                id.store(clinux_gettid(), ordering: .releasing)
                while !mayEnd.load(ordering: .acquiring) {}
            }
            while id.load(ordering: .acquiring) == 0 {}
            let files = try ThreadProbe(thread: id.load(ordering: .acquiring))
            var last = try #require(files.read())
            mayEnd.store(true, ordering: .releasing)
            while let reading = files.read() {
                let grows = reading.minorFaults >= last.minorFaults && reading.slices >= last.slices
                #expect(grows && reading.voluntarySwitches != nil)
                last = reading
            }
            thread.join()
        }
    }

    @Test func unmappedMemoryIsNil() {
        #expect(GuardedMemory().bytes(at: 0, count: 8) == nil)
        #expect(GuardedMemory().bytes(at: .max, count: 8) == nil)
        #expect(GuardedMemory().word(at: 0x10) == nil)
        let value: [UInt64] = [0x0102_0304_0506_0708]
        value.withUnsafeBytes { bytes in
            let address = UInt64(UInt(bitPattern: bytes.baseAddress))
            #expect(GuardedMemory().word(at: address) == 0x0102_0304_0506_0708)
            #expect(GuardedMemory().integer(at: address) == 0x0506_0708)
        }
    }
}
