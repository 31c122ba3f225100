import Glibc
import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// Follows a thread's wait for a lock to its owner, to the lock that the owner waits for, and so on.
struct LockOwnerResolver {
    /// The state of a thread at one moment; two equal states mean that it has not run in between.
    struct ThreadState: Equatable, Sendable {
        var activity: ThreadActivity
        /// A number that grows whenever the thread runs.
        var runs: UInt64
    }

    static let maximumOwners = 16
    private static let changed = AwaitedLock.Ownership.unknown("the lock's owner changed during the inspection")

    let threads: ProcessThreads
    let memory: any MemoryReading
    /// Is asked for whom an owner's call waits; `nil` to leave that out.
    var peers: PeerSearch?
    /// Whether owners of locks may be stopped for their stacks.
    var mayStop = true

    /// A thread that waits for a lock.
    struct Link: Equatable, Sendable {
        var thread: Int32
        var state: ThreadState
        var call: SystemCall
        var frames: [NamedFrame]
        var lock: AwaitedLock
    }

    private var identifier: LockIdentifier {
        LockIdentifier(
            memory: memory, isLive: { threads.state(of: $0) != nil }, isShared: threads.sharesMemory,
            streams: ProcessThreads.layouts.value?.streams, descriptor: ThreadDescriptor.current,
            groupType: ProcessThreads.layouts.value?.groupType,
            taskMetadata: ProcessThreads.layouts.value?.taskMetadata ?? 0)
    }

    /// Follows the owners of the lock that the thread `waiter` waits for; returns `nil` if it waits for no lock.
    ///
    /// `since` is a time of CLOCK_MONOTONIC at which it has waited already: a thread that began later owns no mutex.
    func follow(_ waiter: Int32, stack: CapturedStack?, since: UInt64? = nil) -> LockChain? {
        guard let state = threads.state(of: waiter), let first = link(waiter, state, stack) else { return nil }
        var found = LockChain(lock: first.lock, images: threads.images())
        // A number that glibc has stored; others are those of threads that the kernel or libdispatch has just woken.
        let isStored = [
            .pthreadMutex, .pthreadReadWriteLock, .dynamicLinker, .stdio, .swiftTaskStatus,
        ].contains(first.lock.kind)
        if isStored, let owner = first.lock.owner, let since, threads.isYounger(owner, than: since) {
            found.lock.ownership = .unknown("the thread with the number in it began after the wait")
            return found
        }
        var links = [first]
        var last: Link? = first
        while let link = last, let owner = link.lock.owner {
            guard found.owners.count < Self.maximumOwners else { break }
            let closesCircle = links.contains { $0.thread == owner }
            let (described, next) = describe(owner, own: owner == waiter ? stack : nil)
            found.owners.append(described)
            // Also a stalled thread outside of the circle waits for it forever.
            found.isDeadlock = closesCircle
            if closesCircle { break }
            if let next { links.append(next) }
            last = next
        }
        // A thread that has run meanwhile did not own a lock that others still wait for.
        if let moved = links.firstIndex(where: { !isUnchanged($0) }) {
            found.owners = Array(found.owners.prefix(moved))
            if moved == 0 { found.lock.ownership = Self.changed }
            found.isDeadlock = false
        }
        if first.lock.kind == .dispatchGroup {
            found.lock.entries = DispatchLayout.entries(ofGroupWaitedForAt: first.call.argument(0), memory)
        }
        return found
    }

    /// Returns the call that a thread waits in, and the lock that it waits for; `nil` if it is in no known call.
    func wait(of thread: Int32, stack: CapturedStack?) -> ThreadWait? {
        guard let state = threads.state(of: thread), let call = call(of: state, stack) else { return nil }
        let link = link(thread, state, stack)
        var lock = link?.lock
        // It may have gone on before the lock was read, and own it by now.
        if let link, link.lock.owner != nil, !isUnchanged(link) { lock?.ownership = Self.changed }
        return ThreadWait(call: threads.asked.describe(call, of: thread), lock: lock, link: link)
    }

    /// Marks the waits of threads that can never go on.
    ///
    /// They were read one after the other: a thread that has gone on meanwhile, or whose lock has another owner by now, is
    /// in no deadlock.
    func markDeadlocks(_ waits: inout [Int32: ThreadWait]) {
        var owners = waits.compactMapValues(\.blocker)
        for thread in DeadlockSearch.deadlocked(owners)
        where waits[thread]?.link.map(isUnchanged) != true { owners[thread] = nil }
        for thread in DeadlockSearch.deadlocked(owners) { waits[thread]?.isDeadlock = true }
    }

    private func describe(_ thread: Int32, own stack: CapturedStack?) -> (LockChain.Owner, Link?) {
        let before = threads.state(of: thread)
        let captured = stack ?? (try? threads.capture(thread, mayStop: mayStop).get())
        let after = threads.state(of: thread)
        var owner = LockChain.Owner(
            thread: ThreadIdentity(thread), stack: captured,
            // A thread that was stopped in a call may not have come back to it yet.
            isRunning: after?.activity == .running && captured.flatMap(SystemCall.init(ofStopped:)) == nil
        )
        guard let after, let call = call(of: after, captured), before == after || after.activity == .blocked
        else { return (owner, nil) }
        owner.systemCall = threads.asked.describe(call, of: thread)
        let link = link(thread, after, captured)
        owner.waitsFor = link?.lock
        if let peers, link == nil || link?.lock.kind == .file,
            let question = PeerQuestion(call, of: thread, runs: after.runs, memory)
        {
            peers.ask(question, since: monotonicNow())
            owner.question = question
        }
        return (owner, link)
    }

    private func link(_ thread: Int32, _ state: ThreadState, _ stack: CapturedStack?) -> Link? {
        guard let call = call(of: state, stack) else { return nil }
        // A stack that was captured in another wait does not describe this one.
        let isOfThisWait = stack?.frames.first?.address == call.programCounter
        let frames = isOfThisWait ? stack.map(threads.names) ?? [] : []
        guard let lock = identifier.identify(call, of: thread, in: frames) else { return nil }
        return Link(thread: thread, state: state, call: call, frames: frames, lock: lock)
    }

    /// Returns the call that a thread waits in, or that a stop has met it in: the thread waits in it again.
    private func call(of state: ThreadState, _ stack: CapturedStack?) -> SystemCall? {
        switch state.activity {
        case .waiting(let call): call
        case .blocked:
            stack.flatMap { stack in SystemCall(ofStopped: stack)?.original(frames: threads.names(of: stack)) }
        case .running, .faulting: nil
        }
    }

    private func isUnchanged(_ link: Link) -> Bool {
        identifier.identify(link.call, of: link.thread, in: link.frames) == link.lock
            && threads.state(of: link.thread) == link.state
    }
}

extension ThreadWait {
    /// The thread that has to let go of the lock before this one goes on; `nil` if a time limit ends the wait, too.
    var blocker: Int32? { lock.flatMap { $0.hasTimeout ? nil : $0.owner } }
}

enum DeadlockSearch {
    /// Returns the threads that wait for each other in a cycle, or for one of these, from each one's awaited owner.
    static func deadlocked(_ owners: [Int32: Int32]) -> Set<Int32> {
        var found: Set<Int32> = []
        for start in owners.keys {
            var path: Set<Int32> = []
            var next: Int32? = start
            while let thread = next, path.insert(thread).inserted { next = owners[thread] }
            // The path ended at a thread that waits for none, or came back to one of its own.
            if next != nil { found.insert(start) }
        }
        return found
    }
}

final class ProcessThreads {
    private let capturer: any StackCapturing
    private let functionNames = WaitFunctionNames.shared
    let peers = PeerSearch()
    let asked = AskedCalls()
    /// The time that is left for captures in this pass of the watchdog, in nanoseconds.
    private var timeLeft = UInt64.max
    /// The same for the threads of loops: one that does not stop takes none from those that its report names.
    private var timeLeftForLoops = UInt64.max
    /// What is the same for all loops, as read first in this pass; `nil` before.
    private struct Shared {
        var ready: ReadyThreads?
        var steal: CPUSteal?
        var pressure: Pressure??
        var processors: Int?
    }
    private var shared = Shared()
    /// The list of mappings as last read, up to 1 MiB, for locks in shared memory and page faults; `nil` before.
    private var maps: (text: String, readAt: UInt64)?
    private let readMaps: () -> String?
    /// The age from which on the mappings are read again, in nanoseconds, and that for an address which they lack.
    private static let longestMapsAge: (known: UInt64, unknown: UInt64) = (100_000_000, 10_000_000)

    /// Learned once a process, and not on the watchdog: this locks a stream, and creates a group and tasks.
    static let layouts = Prepared {
        (
            streams: StandardStreams.current, groupType: DispatchLayout.groupType,
            taskMetadata: TaskCalibration.ofThisProcess.metadata
        )
    }

    /// The longest time for captures in one pass of the watchdog, in nanoseconds, plus one capture.
    static let longestLook: UInt64 = 100_000_000

    /// Begins to read the names of functions that wait, and what else looks need; never waits for that.
    init(
        capturer: any StackCapturing,
        maps readMaps: @escaping () -> String? = { readSmallFile("/proc/self/maps", limit: maximumMaps) }
    ) {
        (self.capturer, self.readMaps) = (capturer, readMaps)
        functionNames.prepare(for: images())
        DebugFrames.prepare(for: images())
        Self.layouts.begin()
    }

    /// Begins a pass of the watchdog, for which the time of captures is limited.
    func beginPass(within limit: UInt64 = ProcessThreads.longestLook) {
        (timeLeft, timeLeftForLoops, shared) = (limit, limit, Shared())
    }

    /// Whether another loop's thread may be stopped in this pass.
    var mayStopLoop: Bool { timeLeftForLoops > 0 }

    /// Makes a capture of a loop's thread, whose time counts for this pass.
    func measure(_ capture: () throws(CaptureFailure) -> CapturedStack) -> Result<CapturedStack, CaptureFailure> {
        let began = monotonicNow()
        defer { timeLeftForLoops -= min(monotonicNow() - began, timeLeftForLoops) }
        return Result { () throws(CaptureFailure) in try capture() }
    }

    /// The threads that are ready.
    var ready: ReadyThreads { once(\.shared.ready) { ReadyThreads() } }

    var steal: CPUSteal { once(\.shared.steal) { CPUSteal() } }

    var pressure: Pressure? { once(\.shared.pressure) { Pressure.current() } }

    /// The number of CPUs.
    var processors: Int { once(\.shared.processors) { sysconf(Int32(_SC_NPROCESSORS_ONLN)) } }

    private func once<Value>(_ known: ReferenceWritableKeyPath<ProcessThreads, Value?>, _ read: () -> Value) -> Value {
        if let value = self[keyPath: known] { return value }
        let value = read()
        self[keyPath: known] = value
        return value
    }

    /// Returns the thread's current activity and how often it has run; `nil` if it has ended.
    func state(of thread: Int32) -> LockOwnerResolver.ThreadState? {
        read(thread).map { .init(activity: $0.activity, runs: $0.runs) }
    }

    /// Returns whether a thread began after a time of CLOCK_MONOTONIC: the kernel gives numbers of ended threads again.
    func isYounger(_ thread: Int32, than time: UInt64) -> Bool {
        let stat = readSmallFile("/proc/self/task/\(thread)/stat").flatMap(ProcStat.init)
        return stat?.isYounger(than: bootTime(at: time)) ?? false
    }

    /// Returns whether other processes may have the memory at an address, too; `true` if that cannot be read.
    func sharesMemory(at address: UInt64) -> Bool { mapping(of: address)?.isShared ?? true }

    /// Returns the mapping of an address, as of a moment ago; `nil` if there is none.
    func mapping(of address: UInt64) -> MemoryMapping? {
        let now = monotonicNow()
        if let maps {
            let (found, age) = (MemoryMapping(of: address, in: maps.text), now &- maps.readAt)
            if age < (found == nil ? Self.longestMapsAge.unknown : Self.longestMapsAge.known) { return found }
        }
        maps = readMaps().map { (text: $0, readAt: now) }
        return maps.flatMap { MemoryMapping(of: address, in: $0.text) }
    }

    /// Returns the kind of cause that the thread's activity means; `nil` if it has ended or does not show its wait.
    func activity(of thread: Int32) -> Cause.Kind? {
        guard let reading = read(thread) else { return nil }
        return Cause.Kind(of: reading.activity) ?? reading.waitChannel.flatMap(WaitChannel.purpose(ofFunction:))
    }

    @discardableResult
    private func read(_ thread: Int32) -> ThreadReading? {
        guard var reading = ThreadProbe.readBriefly(thread, [.status, .syscall, .wchan]) else { return nil }
        asked.look(at: &reading, of: thread)
        return reading
    }

    func capture(_ thread: Int32, mayStop: Bool = true) -> Result<CapturedStack, CaptureFailure> {
        guard timeLeft > 0 else { return .failure(.outOfTime) }
        let began = monotonicNow()
        defer { timeLeft -= min(monotonicNow() - began, timeLeft) }
        // What its call asks for, before a stop.
        if mayStop { read(thread) }
        return Result { () throws(CaptureFailure) in try capturer.capture(thread: thread, mayStop: mayStop) }
    }

    func names(of stack: CapturedStack) -> [NamedFrame] {
        functionNames.names(of: stack.frames, in: capturer.images())
    }

    /// Waits until the functions that wait have names, or until a deadline in monotonic nanoseconds.
    func settleNames(until deadline: UInt64) { functionNames.settle(until: deadline) }

    func images() -> ImageList { capturer.images() }
}

/// Reads the call frame information that only the files of images have, when an image is new, on a ``JobThread``.
///
/// Until then, and while a file system does not answer, captures cross such functions by their code.
enum DebugFrames {
    /// A child of fork(2) has no thread that reads them: it asks again.
    private static let known = ProcessMutex(ImageList())

    /// Begins to read the files of images that are new; never waits.
    static func prepare(for images: ImageList) {
        known.withLock { known in
            guard images != known else { return }
            let new = Set(images.images).subtracting(known.images)
            if new.isEmpty || JobThread.files.add({ new.forEach(read) }) { known = images }
        }
    }

    private static func read(_ image: LoadedImage) {
        guard let section = ELFFile.debugFrame(of: ImageIdentity(image)) else { return }
        CUnwindEngine.addDebugFrame(section, of: image)
    }
}
