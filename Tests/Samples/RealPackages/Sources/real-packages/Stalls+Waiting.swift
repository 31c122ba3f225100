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

@inline(never)
private func syncOntoBusyQueue() {
    let queue = DispatchQueue(label: "busy")
    let hasBegun = DispatchSemaphore(value: 0)
    queue.async {
        hasBegun.signal()
        usleep(stallMicroseconds)
    }
    hasBegun.wait()
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
private func waitForNSLock() {
    let lock = NSLock()
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detach {
        lock.lock()
        isHeld.signal()
        usleep(stallMicroseconds)
        lock.unlock()
    }
    isHeld.wait()
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
private func waitForPthreadMutex() {
    let locks = PosixLocks()
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detach {
        pthread_mutex_lock(locks.mutex)
        isHeld.signal()
        usleep(stallMicroseconds)
        pthread_mutex_unlock(locks.mutex)
    }
    isHeld.wait()
    pthread_mutex_lock(locks.mutex)
    pthread_mutex_unlock(locks.mutex)
    finish()
}

@inline(never)
private func waitForReadWriteLock() {
    let locks = PosixLocks()
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detach {
        pthread_rwlock_wrlock(locks.readWriteLock)
        isHeld.signal()
        usleep(stallMicroseconds)
        pthread_rwlock_unlock(locks.readWriteLock)
    }
    isHeld.wait()
    pthread_rwlock_rdlock(locks.readWriteLock)
    pthread_rwlock_unlock(locks.readWriteLock)
    finish()
}

private final class Counter: Sendable {
    let count = Mutex(0)
}

@inline(never)
private func waitForMutex() {
    let counter = Counter()
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detach {
        counter.count.withLock { count in
            isHeld.signal()
            usleep(stallMicroseconds)
            count += 1
        }
    }
    isHeld.wait()
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
        syncOntoBusyQueue()
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
    LabeledStall("NSLock", culprit: "waitForNSLock", .waitingForLock, lock: "pthreadMutex") { waitForNSLock() },
    LabeledStall("pthread mutex", culprit: "waitForPthreadMutex", .waitingForLock, lock: "pthreadMutex") {
        waitForPthreadMutex()
    },
    LabeledStall(
        "pthread rwlock", culprit: "waitForReadWriteLock", .waitingForLock, lock: "pthreadReadWriteLock"
    ) { waitForReadWriteLock() },
    LabeledStall("Mutex", culprit: "waitForMutex", .waitingForLock, lock: "swiftMutex") { waitForMutex() },
    LabeledStall("usleep", culprit: "sleepBriefly", .sleeping) { sleepBriefly() },
]
