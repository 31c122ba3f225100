import Dispatch
import Foundation
import Synchronization

/// A queue that is a monitored loop.
let monitoredQueue = DispatchQueue(label: "monitored")

@inline(never)
private func pollTheClock() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end {}
    finish()
}

/// Makes the main loop run `wait` in a turn that begins when another thread has what it waits for, by `hold`: a turn
/// that begins before could wait for that thread for longer.
private func whileHeld(
    _ wait: @autoclosure @escaping @Sendable () -> Void,
    by hold: @escaping @Sendable (_ inside: @escaping @Sendable () -> Void) -> Void
) {
    let hasBegun = DispatchSemaphore(value: 0)
    Thread.detach {
        hold {
            DispatchQueue.main.async {
                hasBegun.signal()
                wait()
            }
            hasBegun.wait()
            usleep(stallMicroseconds)
        }
    }
}

@inline(never)
private func syncOntoBusyQueue(_ queue: DispatchQueue) {
    queue.sync {}
    finish()
}

@inline(never)
private func waitForGroup() {
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) { usleep(stallMicroseconds) }
    group.wait()
    finish()
}

@inline(never)
private func waitForGroupWithTimeout() {
    let group = DispatchGroup()
    group.enter()
    _ = group.wait(timeout: .now() + stallLength)
    group.leave()
    finish()
}

@inline(never)
private func waitForSemaphore() {
    let semaphore = DispatchSemaphore(value: 0)
    Thread.detach {
        usleep(stallMicroseconds)
        semaphore.signal()
    }
    semaphore.wait()
    finish()
}

@inline(never)
private func blockTheQueue() {
    Foundation.Thread.sleep(forTimeInterval: 0.32)
    finish()
}

@inline(never)
private func waitForNSLock(_ lock: NSLock) {
    lock.lock()
    lock.unlock()
    finish()
}

private final class Counter: Sendable {
    let count = Mutex(0)
}

@inline(never)
private func waitForMutex(_ counter: Counter) {
    use(counter.count.withLock { $0 })
    finish()
}

@inline(never)
private func sleepBriefly() {
    usleep(stallMicroseconds)
    finish()
}

let waitingStalls = [
    LabeledStall("DispatchTime.now()", culprit: "pollTheClock", .computing) { pollTheClock() },
    LabeledStall("sync onto a busy queue", culprit: "syncOntoBusyQueue", .waitingForLock, lock: "dispatchQueue") {
        let queue = DispatchQueue(label: "busy")
        whileHeld(syncOntoBusyQueue(queue)) { inside in queue.async { inside() } }
    },
    LabeledStall("DispatchGroup.wait()", culprit: "waitForGroup", .waitingForLock, lock: "dispatchGroup") {
        waitForGroup()
    },
    LabeledStall(
        "DispatchGroup.wait(timeout:)", culprit: "waitForGroupWithTimeout", .waitingForLock, lock: "dispatchGroup"
    ) { waitForGroupWithTimeout() },
    LabeledStall(
        "DispatchSemaphore.wait()", culprit: "waitForSemaphore", .waitingForLock, lock: "dispatchSemaphore"
    ) { waitForSemaphore() },
    LabeledStall("sleeps on a queue", culprit: "blockTheQueue", .sleeping, on: .queue) { blockTheQueue() },
    LabeledStall("NSLock", culprit: "waitForNSLock", .waitingForLock, lock: "pthreadMutex") {
        let lock = NSLock()
        whileHeld(waitForNSLock(lock)) { inside in lock.withLock { inside() } }
    },
    LabeledStall("Mutex", culprit: "waitForMutex", .waitingForLock, lock: "swiftMutex") {
        let counter = Counter()
        whileHeld(waitForMutex(counter)) { inside in counter.count.withLock { _ in inside() } }
    },
    LabeledStall("usleep", culprit: "sleepBriefly", .sleeping) { sleepBriefly() },
]
