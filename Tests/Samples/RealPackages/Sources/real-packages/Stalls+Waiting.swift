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
private func waitForSemaphoreWithTimeout() {
    let semaphore = DispatchSemaphore(value: 0)
    _ = semaphore.wait(timeout: .now() + stallLength)
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

/// `@unchecked Sendable`: the functions of POSIX may be called with it from any thread, and its address never changes.
private final class PosixLocks: @unchecked Sendable {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    let readWriteLock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(mutex, nil)
        pthread_rwlock_init(readWriteLock, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_rwlock_destroy(readWriteLock)
        mutex.deallocate()
        readWriteLock.deallocate()
    }
}

@inline(never)
private func waitForPthreadMutex(_ locks: PosixLocks) {
    pthread_mutex_lock(locks.mutex)
    pthread_mutex_unlock(locks.mutex)
    finish()
}

@inline(never)
private func waitForReadWriteLock(_ locks: PosixLocks) {
    pthread_rwlock_rdlock(locks.readWriteLock)
    pthread_rwlock_unlock(locks.readWriteLock)
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
    LabeledStall(
        "DispatchSemaphore.wait(timeout:)", culprit: "waitForSemaphoreWithTimeout", .waitingForLock,
        lock: "dispatchSemaphore"
    ) { waitForSemaphoreWithTimeout() },
    LabeledStall("sleeps on a queue", culprit: "blockTheQueue", .sleeping, on: .queue) { blockTheQueue() },
    LabeledStall("NSLock", culprit: "waitForNSLock", .waitingForLock, lock: "pthreadMutex") {
        let lock = NSLock()
        whileHeld(waitForNSLock(lock)) { inside in lock.withLock { inside() } }
    },
    LabeledStall("pthread mutex", culprit: "waitForPthreadMutex", .waitingForLock, lock: "pthreadMutex") {
        let locks = PosixLocks()
        whileHeld(waitForPthreadMutex(locks)) { inside in
            pthread_mutex_lock(locks.mutex)
            inside()
            pthread_mutex_unlock(locks.mutex)
        }
    },
    LabeledStall(
        "pthread rwlock", culprit: "waitForReadWriteLock", .waitingForLock, lock: "pthreadReadWriteLock"
    ) {
        let locks = PosixLocks()
        whileHeld(waitForReadWriteLock(locks)) { inside in
            pthread_rwlock_wrlock(locks.readWriteLock)
            inside()
            pthread_rwlock_unlock(locks.readWriteLock)
        }
    },
    LabeledStall("Mutex", culprit: "waitForMutex", .waitingForLock, lock: "swiftMutex") {
        let counter = Counter()
        whileHeld(waitForMutex(counter)) { inside in counter.count.withLock { _ in inside() } }
    },
    LabeledStall("usleep", culprit: "sleepBriefly", .sleeping) { sleepBriefly() },
]
