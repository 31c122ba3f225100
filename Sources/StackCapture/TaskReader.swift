internal import CUnwind
import Glibc
import LinuxSupport

/// All tasks of this process at one time, and what its threads run.
package struct TaskReading: Sendable {
    /// Sorted by address.
    package var tasks: [SwiftTask] = []
    package var threads: [TaskThread] = []
    package var searchedBytes: UInt64 = 0
    /// Why there may be more tasks; `nil` if all memory was searched.
    package var incompleteReason: String?
}

/// A thread that runs a task or an actor.
package struct TaskThread: Sendable, Equatable {
    package var id: Int32
    /// The address of its current task; 0 if it has none.
    package var task: UInt64
    /// The address of the actor or executor that it runs; 0 if it runs none, or that is not known.
    package var executor: UInt64
}

extension TaskReading {
    /// Returns the threads that have left the task, and the executor, that they ran in this reading.
    ///
    /// `now` are later readings of threads, and `id` is that of the task at an address, whose memory is used again for
    /// the next task. What such a thread does now is not what the task of this reading does.
    func left(_ now: [TaskThread], id: (UInt64) -> UInt64?) -> (tasks: Set<Int32>, executors: Set<Int32>) {
        let later = Dictionary(now.map { ($0.id, $0) }) { first, _ in first }
        let ids = Dictionary(tasks.map { ($0.address, $0.id) }) { first, _ in first }
        var left: (tasks: Set<Int32>, executors: Set<Int32>) = ([], [])
        for thread in threads {
            let runsIt = later[thread.id]?.task == thread.task && id(thread.task) == ids[thread.task]
            if thread.task != 0, !runsIt { left.tasks.insert(thread.id) }
            if thread.executor != 0, later[thread.id]?.executor != thread.executor {
                left.executors.insert(thread.id)
            }
        }
        return left
    }
}

/// Finds the tasks of this process: by their first word in its writable memory, and by their relations.
///
/// It reads through the kernel, so no thread is stopped and no address can fault, on the monitor's thread, in slices.
package struct TaskReader {
    package static let maximumTasks = 100_000
    /// The most memory that is searched, in bytes (4 GiB).
    static let maximumBytes: UInt64 = 4 << 30
    /// The longest time of one reading, or of all searches for continuations, in nanoseconds (5 s).
    package static let longestTime: UInt64 = 5_000_000_000
    /// The memory that is searched at once, in bytes (1 MiB): about 0.2 ms.
    private static let pieceBytes: UInt64 = 1 << 20
    /// The pieces, and the tasks, after which the thread lets others run: about 4 ms.
    private static let piecesPerSlice = 16
    private static let tasksPerSlice = 256
    /// The pause between slices, in microseconds.
    private static let pause: UInt32 = 1_000
    /// The most addresses found in one piece: each has the size of a task, at least.
    private static let maximumFound = Int(pieceBytes / SwiftTaskMemory.taskBytes)
    /// The most bytes of /proc/self/maps.
    private static let maximumMapBytes = 16 << 20

    private let calibration: TaskCalibration
    private let layout: ContextLayout
    /// Where a thread keeps its queue, from its thread pointer; `nil` if that is not known.
    private let queue: Int64?
    package let memory: SwiftTaskMemory

    /// Creates a reader with a calibration without a problem, and a layout with the place of a thread's current task.
    package init(_ calibration: TaskCalibration, _ layout: ContextLayout, queue: Int64? = nil) {
        self.calibration = calibration
        self.layout = layout
        self.queue = queue
        memory = SwiftTaskMemory(
            GuardedMemory(), metadata: calibration.metadata, adapter: calibration.adapter)
    }

    /// Reads all tasks, those at known `addresses` first, in at most five seconds; without a search only those, what
    /// they wait for, and what threads run.
    package func read(from addresses: [UInt64] = [], isSearching: Bool = true) -> TaskReading {
        let deadline = monotonicNow() &+ Self.longestTime
        var reading = TaskReading()
        var known: [UInt64: SwiftTask] = [:]
        var seen: Set<UInt64> = []
        func add(_ address: UInt64) {
            guard known.count < Self.maximumTasks, monotonicNow() < deadline else {
                reading.incompleteReason = "there are more tasks than a reading may take"
                return
            }
            var next: [UInt64] = [address]
            while let address = next.popLast(), known.count < Self.maximumTasks {
                guard seen.insert(address).inserted, let task = memory.stableTask(at: address) else { continue }
                known[address] = task
                if known.count % Self.tasksPerSlice == 0 { usleep(Self.pause) }
                if let parent = task.parent { next.append(parent) }
                if case .task(let other) = task.dependency { next.append(other) }
                if case .group(let group) = task.dependency { next += memory.children(ofGroup: group) ?? [] }
            }
        }
        for address in addresses { add(address) }
        if isSearching { for address in search(&reading, for: memory.metadata, until: deadline) { add(address) } }
        reading.threads = threads()
        for thread in reading.threads where thread.task != 0 { add(thread.task) }
        // Memory keeps what tasks left behind. A task that runs is the current one of a thread.
        let current = Set(reading.threads.map(\.task))
        let live = known.values.filter { task in
            if task.isRunning, !current.contains(task.address) { return false }
            return !task.dependsOnLaterReadings || memory.stableTask(at: task.address)?.isSameWait(as: task) == true
        }
        // Ids are unique: of two tasks with the same id, at least one is what another left behind.
        let counts = Dictionary(live.map { ($0.id, 1) }, uniquingKeysWith: +)
        reading.tasks = live.filter { counts[$0.id] == 1 }.sorted { $0.address < $1.address }
        return reading
    }

    /// Returns the addresses of objects that begin with a word, or what stands for each of them when it is found.
    private func search(
        _ reading: inout TaskReading, for word: UInt64, until deadline: UInt64, each: (UInt64) -> UInt64 = { $0 }
    ) -> [UInt64] {
        guard let maps = readSmallFile("/proc/self/maps", limit: Self.maximumMapBytes) else {
            reading.incompleteReason = "the system does not show the memory map"
            return []
        }
        if maps.utf8.count >= Self.maximumMapBytes {
            reading.incompleteReason = "the memory map is longer than a reading may take"
        }
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: Int(Self.pieceBytes), alignment: 16)
        defer { buffer.deallocate() }
        var found = [UInt64](repeating: 0, count: Self.maximumFound)
        var addresses: [UInt64] = []
        var pieces = 0
        let pages = ResidentPages()
        for range in Self.ranges(in: maps) {
            var at = range.lowerBound
            while at < range.upperBound {
                guard reading.searchedBytes < Self.maximumBytes, addresses.count < 4 * Self.maximumTasks,
                    monotonicNow() < deadline
                else {
                    reading.incompleteReason = "there is more memory than a reading may search"
                    return addresses
                }
                let piece = at..<min(at + Self.pieceBytes, range.upperBound)
                at = piece.upperBound
                let (resident, isSwapped) = pages.ranges(in: piece)
                if isSwapped { reading.incompleteReason = "a part of the memory is swapped out, and stays so" }
                for part in resident {
                    let length = part.upperBound - part.lowerBound
                    let count = cunwind_find_words(
                        part.lowerBound, Int(length), word, buffer, &found, found.count)
                    if count == found.count {
                        reading.incompleteReason = "more words look like tasks than can be tasks"
                    }
                    addresses += found.prefix(count).map(each)
                    reading.searchedBytes += length
                }
                guard !resident.isEmpty else { continue }
                pieces += 1
                if pieces % Self.piecesPerSlice == 0 { usleep(Self.pause) }
            }
        }
        return addresses
    }

    /// Searches all memory for the checked continuations of waiting tasks; returns the tasks that still wait and have none.
    ///
    /// Takes at most `time` nanoseconds; one incomplete or no longer wanted returns none. `bytes`: the memory searched.
    ///
    /// The object in which Swift's library keeps a checked continuation is freed with the last reference to it, and malloc(3)
    /// writes over the first word of what is free. A task that waits again and again may have its object where the search
    /// was a moment ago. Of short waits it is seen to go on; of long ones, one of several searches finds the object.
    package func tasksWithoutContinuation(
        among tasks: [SwiftTask], within time: UInt64 = longestTime, isWanted: () -> Bool = { true }
    ) -> (ids: Set<UInt64>, bytes: UInt64) {
        let ranges = readSmallFile("/proc/self/maps", limit: Self.maximumMapBytes).map(Self.ranges) ?? []
        var left = tasks.filter { task in ranges.contains { $0.contains(task.address) } }
        guard calibration.continuation != 0, !left.isEmpty else { return ([], 0) }
        let deadline = monotonicNow() &+ time
        var reads = 0
        // An object that has to be found: else the search is worth nothing.
        let control = UnsafeMutablePointer<UInt64>.allocate(capacity: Self.continuationWords)
        control.initialize(repeating: 0, count: Self.continuationWords)
        control[0] = calibration.continuation
        defer {
            control[0] = 0
            control.deallocate()
        }
        let known = UInt64(UInt(bitPattern: control))
        var bytes: UInt64 = 0
        for number in 0..<Self.searches where !left.isEmpty {
            var reading = TaskReading()
            let found = search(&reading, for: calibration.continuation, until: deadline) { object in
                object == known ? known : memory.ownerOfContinuation(at: object) ?? 0
            }
            guard reading.incompleteReason == nil, found.contains(known), isWanted() else { return ([], 0) }
            let owners = Set(found)
            left = left.filter { !owners.contains($0.address) && memory.stableTask(at: $0.address) == $0 }
            bytes = reading.searchedBytes
            let end = monotonicNow() &+ (number == 0 ? Self.watchTime : 0)
            while !left.isEmpty, isWanted(), monotonicNow() < end {
                left = left.filter { memory.task(at: $0.address) == $0 }
                reads += left.count
                if reads % Self.tasksPerSlice < left.count { usleep(Self.pause) }
            }
        }
        return (Set(left.map(\.id)), bytes)
    }

    /// The searches for continuations, which take at most ``longestTime`` together: enough for 1 GB.
    private static let searches = 6
    /// How long it is watched whether tasks go on, in nanoseconds (1 s).
    private static let watchTime: UInt64 = 1_000_000_000
    /// The words of a checked continuation's object: two of its header, the task, and a string.
    private static let continuationWords = 5

    /// Returns the writable memory without a file that a map shows, without the main thread's stack.
    static func ranges(in maps: String) -> [Range<UInt64>] {
        maps.utf8.split(separator: UInt8(ascii: "\n")).compactMap { line in
            // 7f00-7f01 rw-p 00000000 00:00 0   [heap]
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 5).map { String(Substring($0)) }
            guard words.count >= 5, words[1].hasPrefix("rw") && words[1].hasSuffix("p"), words[4] == "0" else {
                return nil
            }
            if words.count == 6, words[5].contains("[stack]") { return nil }
            let ends = words[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            return ends.count == 2 && ends[0] < ends[1] ? ends[0]..<ends[1] : nil
        }
    }

    /// Returns the threads that run a task or an actor, without the monitor's own.
    package func threads() -> [TaskThread] {
        let own = WorkerThread.ids
        return ThreadIdentity.all().compactMap { own.contains($0) ? nil : thread($0) }
    }

    /// Returns the threads that have left the task, and the executor, that they ran in a reading.
    package func left(since reading: TaskReading) -> (tasks: Set<Int32>, executors: Set<Int32>) {
        reading.left(threads()) { memory.stableTask(at: $0)?.id }
    }

    /// Returns what a thread runs, if two readings agree; `nil` if it runs no task and no actor.
    package func thread(_ id: Int32) -> TaskThread? {
        guard let first = read(id), first.task != 0 || first.executor != 0, read(id) == first else { return nil }
        return first
    }

    private func read(_ id: Int32) -> TaskThread? {
        guard let task = layout.task, let pointer = pointer(ofThread: id) else { return nil }
        let memory = GuardedMemory()
        func word(_ offset: Int64) -> UInt64 { memory.word(at: pointer &+ UInt64(bitPattern: offset)) ?? 0 }
        let tracking = calibration.activeExecutor.map(word) ?? 0
        let executor = tracking == 0 ? 0 : memory.word(at: tracking) ?? 0
        return TaskThread(id: id, task: word(task), executor: executor)
    }

    /// Returns the dispatch queues that a thread runs, the innermost first; none if it runs none, or that is not known.
    package func queues(ofThread id: Int32) -> [UInt64] {
        guard let queue, let pointer = pointer(ofThread: id) else { return [] }
        return QueueCalibration.queues(at: pointer &+ UInt64(bitPattern: queue), GuardedMemory())
    }

    private func pointer(ofThread id: Int32) -> UInt64? {
        guard let robustList = layout.robustList else { return nil }
        let pointer = cunwind_thread_pointer(robustList, id)
        return pointer == 0 ? nil : pointer
    }
}

extension SwiftTask {
    /// Whether what was read after the task, a thread or another task, belongs to it only if it has not gone on: memory
    /// is used again, for another task, group or actor.
    fileprivate var dependsOnLaterReadings: Bool {
        if isRunning || group != nil { return true }
        guard case .executor(let address) = dependency else { return false }
        return address != 0
    }

    fileprivate func isSameWait(as other: SwiftTask) -> Bool {
        id == other.id && isRunning == other.isRunning && dependency == other.dependency && group == other.group
    }
}

/// Tells which pages have memory: a reading must not bring others into it.
private final class ResidentPages {
    private static let pageBytes = UInt64(sysconf(Int32(_SC_PAGESIZE)))
    /// The flags of an entry of /proc/self/pagemap (proc_pid_pagemap(5)).
    private static let isPresent: UInt64 = 1 << 63
    private static let isSwapped: UInt64 = 1 << 62
    /// An inaccessible page of MADV_GUARD_INSTALL (PM_GUARD_REGION, Linux 6.15), with the flag of a swapped one, too:
    /// glibc has one below each thread's stack from 2.42 on.
    private static let isGuard: UInt64 = 1 << 58

    private let file = KeptDescriptor(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC))

    deinit { file.close() }

    /// Returns the parts of a piece in memory (all, where it is not shown), and whether others are swapped out.
    func ranges(in piece: Range<UInt64>) -> (resident: [Range<UInt64>], isSwapped: Bool) {
        let first = piece.lowerBound / Self.pageBytes
        let count = Int((piece.upperBound + Self.pageBytes - 1) / Self.pageBytes - first)
        guard file.isOpen else { return ([piece], false) }
        return withUnsafeTemporaryAllocation(of: UInt64.self, capacity: count) { entries in
            let bytes = pread(file.number, entries.baseAddress, 8 * count, Int(8 * first))
            guard bytes == 8 * count else { return ([piece], false) }
            return Self.ranges(entries: entries.prefix(count), from: first * Self.pageBytes)
        }
    }

    private static func ranges(
        entries: Slice<UnsafeMutableBufferPointer<UInt64>>, from start: UInt64
    ) -> (resident: [Range<UInt64>], isSwapped: Bool) {
        var (ranges, isAnySwapped): ([Range<UInt64>], Bool) = ([], false)
        var at = start
        for entry in entries {
            let page = at..<at + pageBytes
            at = page.upperBound
            if entry & (isSwapped | isGuard) == isSwapped { isAnySwapped = true }
            guard entry & isPresent != 0 else { continue }
            if let last = ranges.last, last.upperBound == page.lowerBound {
                ranges[ranges.count - 1] = last.lowerBound..<page.upperBound
            } else {
                ranges.append(page)
            }
        }
        return (ranges, isAnySwapped)
    }
}
