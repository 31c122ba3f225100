import Dispatch
import Foundation
import LinuxSupport
import StackCapture
import TestSupport
import Testing

@testable import StallWatch

@Suite struct QueueOwnerTests {
    @Test func theThreadThatRunsTheQueueIsItsOwner() {
        let queue = DispatchQueue(label: "owned")
        let owner = QueueOwner(queue)
        #expect(owner.current() == nil)
        queue.sync { owner.confirm() }
        let isRunning = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var thread: Int32 = 0
        queue.async {
            // "<process>/task/<thread>"
            thread = readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) } ?? 0
            isRunning.signal()
            mayEnd.wait()
        }
        isRunning.wait()
        // Written before the semaphore was signaled.
        #expect(owner.current() == .thread(thread))
        mayEnd.signal()
    }

    @Test func aQueueThatRunsNothingHasNoOwner() {
        let queue = DispatchQueue(label: "idle")
        let owner = QueueOwner(queue)
        queue.sync { owner.confirm() }
        queue.sync {}
        #expect(owner.current() == .unknown)
    }

    @Test func `an item of a suspended queue is not idle`() {
        let queue = DispatchQueue(label: "suspended by its item")
        let owner = QueueOwner(queue)
        queue.sync { owner.confirm() }
        queue.sync {
            queue.suspend()
            #expect(!owner.isIdle && !owner.isSuspended)
        }
        #expect(eventually { owner.isSuspended })
        queue.resume()
    }

    @Test func `only an empty queue, or a suspended one, is idle`() {
        let queue = DispatchQueue(label: "idle or not")
        let owner = QueueOwner(queue)
        #expect(!owner.isIdle, "the layout is not confirmed")
        queue.sync { owner.confirm() }
        #expect(owner.isIdle)
        queue.sync { #expect(!owner.isIdle) }
        #expect(!owner.isSuspended)
        queue.suspend()
        #expect(owner.isIdle && owner.isSuspended)
        let isDone = DispatchSemaphore(value: 0)
        queue.async { isDone.signal() }
        #expect(owner.isIdle, "its item waits on purpose")
        queue.resume()
        isDone.wait()
        #expect(eventually { owner.isIdle })
        // A queue whose target has no thread for it.
        let target = DispatchQueue(label: "target", attributes: .initiallyInactive)
        let child = DispatchQueue(label: "child", target: target)
        child.async { isDone.signal() }
        let word = QueueOwner(child)
        #expect(!word.isIdle)
        target.activate()
        isDone.wait()
    }

    @Test func `a queue waits for what its target runs, or for its resumption`() {
        let target = DispatchQueue(label: "busy target")
        let between = DispatchQueue(label: "between", target: target)
        let queue = DispatchQueue(label: "waiting", target: between)
        let owner = QueueOwner(queue)
        queue.sync { owner.confirm() }
        let (isRunning, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        nonisolated(unsafe) var thread: Int32 = 0
        target.async {
            thread = callingThread
            isRunning.signal()
            mayEnd.wait()
        }
        isRunning.wait()
        #expect(owner.current() == .unknown, "no item of the queue waits for its target")
        let isDone = DispatchSemaphore(value: 0)
        queue.async { isDone.signal() }
        // Written before the semaphore was signaled.
        #expect(owner.current() == .thread(thread))
        #expect(!owner.isSuspended && !owner.isIdle)
        between.suspend()
        #expect(owner.current() == .unknown, "it does not wait for the thread of the target")
        between.resume()
        target.suspend()
        mayEnd.signal()
        #expect(eventually { owner.isSuspended && owner.isIdle })
        #expect(owner.current() == .unknown)
        target.resume()
        isDone.wait()
        #expect(eventually { owner.isIdle && !owner.isSuspended })
    }

    /// Every kind of queue that is empty has the state that counts as idle, whatever ran on it before.
    @Test func `empty queues of all kinds are idle`() {
        let main = QueueOwner(.main)
        #expect(!main.isIdle)
        let queues = [
            DispatchQueue(label: "plain"), DispatchQueue(label: "quality", qos: .userInteractive),
            DispatchQueue(label: "pools", autoreleaseFrequency: .workItem),
            DispatchQueue(label: "targeted", target: DispatchQueue(label: "target")),
            DispatchQueue(label: "global", target: .global(qos: .utility)),
        ]
        for queue in queues {
            let owner = QueueOwner(queue)
            for quality in [.background, .default, .userInteractive] as [DispatchQoS] {
                queue.async(qos: quality) { owner.confirm() }
            }
            queue.sync {}
            #expect(eventually { owner.isIdle }, "\(queue.label)")
        }
    }
}

@Suite(.serialized) struct PoolIdleCheckTests {
    /// Sends items until one has confirmed the layout: a thread may take an item before it is seen.
    private func confirm(_ check: GlobalQueueIdleCheck, _ queue: DispatchQueue) -> Bool {
        eventually {
            queue.async {}
            check.confirm()
            return check.isIdle(thread: nil, lastDelay: 0)
        }
    }

    @Test func `a global queue is idle until an item waits for a thread`() {
        let queue = DispatchQueue.global(qos: .background)
        let check = GlobalQueueIdleCheck(queue)
        #expect(HeartbeatSource.globalQueue(.background).workers == ".background-qos")
        #expect(!check.isIdle(thread: nil, lastDelay: 0), "the layout is not confirmed")
        #expect(confirm(check, queue))
        let gate = DispatchSemaphore(value: 0)
        let group = DispatchGroup()
        // More items than the pool has threads, which libdispatch adds one by one while all of them block.
        let count = 300
        for _ in 0..<count { queue.async(group: group) { gate.wait() } }
        #expect(!check.isIdle(thread: nil, lastDelay: 0))
        for _ in 0..<count { gate.signal() }
        group.wait()
        #expect(eventually { check.isIdle(thread: nil, lastDelay: 0) })
    }

    @Test func `a queue that is not global has another layout`() {
        let queue = DispatchQueue(label: "serial")
        let check = GlobalQueueIdleCheck(queue)
        let gate = DispatchSemaphore(value: 0)
        queue.async { gate.wait() }
        queue.async {}
        check.confirm()
        gate.signal()
        queue.sync {}
        #expect(!check.isIdle(thread: nil, lastDelay: 0))
    }

    @Test func `only the queue of Swift's tasks confirms a task pool`() {
        let check = TaskPoolIdleCheck()
        DispatchQueue(label: TaskPoolIdleCheck.label).sync { check.confirm() }
        #expect(!check.isReplaced)
        DispatchQueue.global().sync { check.confirm() }
        #expect(check.isReplaced, "a program's own executor runs tasks elsewhere")
        #expect(!check.isIdle(thread: nil, lastDelay: 0))
    }

    @Test func `a task of this process finds Swift's own pool`() async {
        let check = TaskPoolIdleCheck()
        await Task.detached { check.confirm() }.value
        #expect(check.queue != nil && !check.isReplaced)
    }

    @Test(
        arguments: [
            (0x1f_fe10_0000_0000, 2, true), (0x1f_fc00_0000_0000, 2, false), (0x20_009c_0000_0000, 2, true),
            (0x1f_fe00_0000_0000, 1, false), (0x20_0010_0000_0000, 1, true), (0x20_0010_0000_7d3a, 1, false),
            (0x20_0000_0000_0000, 0, false), (0, 2, false),
        ] as [(UInt64, UInt64, Bool)])
    func `a concurrent queue's state counts its items`(state: UInt64, width: UInt64, runs: Bool) {
        #expect(DispatchLayout.runs(state, width: width) == runs)
    }

    @Test(
        arguments: [
            (0x1f_fe10_0000_0000, 2, 1), (0x1f_fc00_0000_0000, 2, 0), (0x20_009c_0000_0000, 2, 2),
            // A thread that hands out places has taken all of them.
            (0x20_009c_0000_7d3a, 2, 0), (0x20_0010_0000_0000, 1, 1), (0, 2, 0),
        ] as [(UInt64, UInt64, Int)])
    func `a concurrent queue's state counts the items with a place`(state: UInt64, width: UInt64, places: Int) {
        #expect(DispatchLayout.places(state, width: width) == places)
    }

    /// A queue at 0x1000, whose items are at 0x2000 and so on.
    private func queue(_ items: [UInt64], last: UInt64) -> Words {
        var words: [UInt64: UInt64] = [0x1000 + 104: items.first ?? 0, 0x1000 + 48: last]
        // The first one that follows an item stays, so that an item that comes again closes a circle.
        for (item, next) in zip(items, items.dropFirst() + [0]) { words[item + 16] = words[item + 16] ?? next }
        return Words(words)
    }

    @Test func `the items that wait in a queue are followed from the oldest to the last`() {
        let layout = QueueItems(head: 104, next: 16)
        #expect(layout.items(of: 0x1000, queue([], last: 0)) == [])
        let items: [UInt64] = [0x2000, 0x3000, 0x2800]
        #expect(layout.items(of: 0x1000, queue(items, last: 0x2800)) == items)
        // An item that was freed, one that is not linked yet, a circle, and memory that is not there.
        #expect(layout.items(of: 0x1000, queue([0x2000], last: 0x2800)) == nil)
        #expect(layout.items(of: 0x1000, queue(items + [0x2000], last: 0x4000)) == nil)
        #expect(layout.items(of: 0x1000, queue([], last: 0x2800)) == nil)
        #expect(layout.items(of: 0x5000, queue(items, last: 0x2800)) == nil)
    }

    @Test(
        arguments: [
            (0x80c0_0001, true), (0x40_0001, false), (0xc0_0001, false), (0x8040_0001, false), (0x90c0_0001, false),
        ] as [(UInt64, Bool)])
    func `a source without code to run is spent, but for a canceled one`(flags: UInt64, isSpent: Bool) {
        let contents: [UInt64: UInt64] = [0x2000: 0x700, 0x2000 + 80: flags]
        let words = Words(contents)
        #expect(DispatchLayout.isSpent(0x2000, ofType: 0x700, words) == isSpent)
        for type in [0x708, 0, nil] as [UInt64?] { #expect(!DispatchLayout.isSpent(0x2000, ofType: type, words)) }
    }

    @Test func `the source of a block that has run later is spent, and a block is not`() async throws {
        QueueItems.learn()
        let (queue, memory) = (DispatchQueue(label: "later"), GuardedMemory())
        await withCheckedContinuation { continuation in
            // A date that has passed would make a block of it.
            queue.asyncAfter(deadline: .now() + .seconds(2)) {
                queue.suspend()
                continuation.resume()
            }
        }
        queue.async {}
        defer { queue.resume() }
        let address = try #require(memory.dispatchObject(of: queue))
        let end = monotonicNow() + 60_000_000_000
        var items: [UInt64] = []
        // The source waits to be freed a while after its block has run.
        while items.count < 2 || !items.contains(where: { DispatchLayout.isSpent($0, memory) }), monotonicNow() < end {
            usleep(1_000)
            items = QueueItems.learned?.items(of: address, memory) ?? []
        }
        #expect(items.count { DispatchLayout.isSpent($0, memory) } == 1 && items.count == 2)
    }
}

/// Names of callouts by return addresses, for a CoreFoundation that does not have them.
@Suite struct CalloutNamesTests {
    private let timer = "__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__"
    private let code = CapturedFrame(address: 0x100, isExact: false)

    @Test func `a return address names its function`() {
        let names = CalloutNames(names: [0x100: timer])
        let callee = CapturedFrame(address: 0x900, isExact: false)
        #expect(names.name(of: code, calling: callee) == timer)
        #expect(names.name(of: callee, calling: code) == nil)
    }

    @Test func `the caller of libdispatch's function is the main queue's callout`() {
        let names = CalloutNames(names: [0x300: timer], mainQueueFunction: 0x900..<0x980)
        let inside = CapturedFrame(address: 0x910, isExact: false)
        let outside = CapturedFrame(address: 0x9a0, isExact: false)
        #expect(names.name(of: code, calling: inside) == "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__")
        #expect(names.name(of: code, calling: outside) == nil)
    }
}
