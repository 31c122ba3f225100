import Dispatch
import Foundation

@inline(never)
private func waitForOperations() {
    let queue = OperationQueue()
    queue.addOperation { usleep(stallMicroseconds) }
    queue.waitUntilAllOperationsAreFinished()
    finish()
}

@inline(never)
private func computeConcurrently() {
    let end = DispatchTime.now() + stallLength
    DispatchQueue.concurrentPerform(iterations: 2) { index in
        var value = UInt64(index)
        while DispatchTime.now() < end { value = value &* 6_364_136_223_846_793_005 &+ 1 }
        use(value)
    }
    finish()
}

@inline(never)
private func sleepInFoundation() {
    Foundation.Thread.sleep(forTimeInterval: 0.32)
    finish()
}

@inline(never)
private func formatStrings() {
    let end = DispatchTime.now() + stallLength
    while DispatchTime.now() < end { use(String(format: "%08.3f %@ %d", 3.14159, "text", 42)) }
    finish()
}

@inline(never)
private func readFromPipe() {
    let pipe = Pipe()
    Thread.detach {
        usleep(stallMicroseconds)
        try? pipe.fileHandleForWriting.write(contentsOf: Data([1]))
    }
    use(try? pipe.fileHandleForReading.read(upToCount: 1))
    finish()
}

@inline(never)
private func waitForCondition() {
    let condition = NSCondition()
    condition.lock()
    use(condition.wait(until: Date(timeIntervalSinceNow: 0.32)))
    condition.unlock()
    finish()
}

/// qsort of libc calls a closure of the app.
@inline(never)
private func sortInC() {
    var numbers = (0..<8).map { Int32(($0 * 7_919) % 64) }
    qsort(&numbers, numbers.count, MemoryLayout<Int32>.size) { left, right in
        // Few sleeps: after each the thread may wait for a CPU.
        usleep(20_000)
        finish()
        let (left, right) = (left?.load(as: Int32.self) ?? 0, right?.load(as: Int32.self) ?? 0)
        return left < right ? -1 : left > right ? 1 : 0
    }
    use(numbers)
    finish()
}

@inline(never)
private func waitForTask() {
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        try? await Task.sleep(nanoseconds: 320_000_000)
        done.signal()
    }
    done.wait()
    finish()
}

private actor Counter {
    private var count = 0
    func increase() -> Int {
        count += 1
        return count
    }
}

@MainActor
private final class Screen {
    private var text = ""
    /// Runs on the main actor between two suspensions.
    @inline(never)
    func refresh(_ counter: Counter) async {
        let number = await counter.increase()
        let end = DispatchTime.now() + stallLength
        while DispatchTime.now() < end { text = "\(number)".padding(toLength: 64, withPad: "-", startingAt: 0) }
        use(text)
        finish()
        use(await counter.increase())
    }
}

let systemStalls = [
    LabeledStall(
        "OperationQueue.waitUntilAllOperationsAreFinished()", culprit: "waitForOperations", .waitingForLock
    ) { waitForOperations() },
    LabeledStall("concurrentPerform", culprit: "computeConcurrently", .computing) { computeConcurrently() },
    LabeledStall("Thread.sleep(forTimeInterval:)", culprit: "sleepInFoundation", .sleeping) { sleepInFoundation() },
    LabeledStall("String(format:)", culprit: "formatStrings", .computing) { formatStrings() },
    LabeledStall("FileHandle.read on a pipe", culprit: "readFromPipe", [.io]) { readFromPipe() },
    LabeledStall("NSCondition.wait(until:)", culprit: "waitForCondition", .waitingForLock, lock: "condition") {
        waitForCondition()
    },
    LabeledStall("closure that qsort calls", culprit: "sortInC", .sleeping) { sortInC() },
    LabeledStall("semaphore for a task", culprit: "waitForTask", .waitingForLock, lock: "dispatchSemaphore") {
        waitForTask()
    },
    LabeledStall("method of a main actor's class", culprit: "refresh", .computing) {
        Task { @MainActor in await Screen().refresh(Counter()) }
    },
]
