import Glibc
package import LinuxSupport

package struct SwiftTask: Sendable, Equatable {
    /// What a task that is not running waits for.
    package enum Dependency: Sendable, Hashable {
        /// The end of the task at this address.
        case task(UInt64)
        case continuation
        /// A child of the task group at this address.
        case group(UInt64)
        /// Its turn on the executor at this address, which is the actor's object for most actors; 0: the task pool.
        case executor(UInt64)
        /// A thread of the task executor at this address, which the task prefers to the pool.
        case taskExecutor(UInt64)
    }

    package var address: UInt64
    package var id: UInt64
    /// The name's bytes; `nil` if it has none.
    package var name: [UInt8]?
    package var isCanceled: Bool
    /// Whether a thread runs it: it then waits for nothing.
    package var isRunning: Bool
    package var dependency: Dependency?
    /// The id of the task that it waits for, which lives until then: another task may get its memory later.
    package var awaitedID: UInt64?
    /// The address of the task whose child it is.
    package var parent: UInt64?
    package var parentID: UInt64?
    /// The address of the group whose child it is.
    package var group: UInt64?
    /// The address of the task executor that it prefers to the pool, while it runs; `nil` if it prefers none.
    package var preference: UInt64?
    /// Where the waiting function and its async callers resume, the innermost first; empty while it runs.
    package var callers: [UInt64] = []
}

extension SwiftTask {
    /// The address of the task that the calling thread runs; 0 if it runs none, or that is not known.
    package static var currentAddress: UInt64 {
        withUnsafeCurrentTask { task in
            // The type has one field, the reference to the task (stdlib/public/Concurrency/Task.swift). If that
            // changes, the calibrations fail, and tasks are not read.
            guard let task, MemoryLayout<UnsafeCurrentTask>.size == MemoryLayout<UInt>.size else { return 0 }
            return UInt64(unsafeBitCast(task, to: UInt.self))
        }
    }
}

/// Reads tasks by the layout of Swift 6.3 on 64-bit platforms without priority escalation.
///
/// The sources are swift/ABI/Task.h, TaskStatus.h and MetadataValues.h, and TaskPrivate.h of the runtime;
/// ``TaskCalibration`` checks each field with tasks whose state it knows. A value that does not fit is no task.
package struct SwiftTaskMemory {
    /// The size of a task, as the runtime exports it: its last field is a mutex, which is larger on aarch64.
    static let taskBytes = (UInt64(Word.mutex * 8 + MemoryLayout<pthread_mutex_t>.size) + 15) & ~15
    /// The version of the layout, as the runtime exports it.
    static let layoutVersion: UInt64 = 1
    static let maximumRecords = 64
    /// The most child tasks of a group that are listed.
    static let maximumChildren = 1_000
    static let maximumCallers = 64

    private enum Word {
        static let metadata = 0
        /// The job's flags, and the low half of the id.
        static let flags = 4
        static let resumeFunction = 7
        static let resumeContext = 8
        static let status = 12
        static let records = 13
        static let idHigh = 18
        static let dependency = 20
        static let mutex = 21
        /// The first word behind the task: its parent, if it is a child; then the next child, and the group.
        static let parent = Int(taskBytes / 8)
        static let nextChild = parent + 1
        static let group = parent + 2
        static let count = group + 1
    }
    /// The job's kind, and the flags of Job::Flags.
    private static let kindMask: UInt64 = 0xff
    private static let isChild: UInt64 = 1 << 24
    private static let isGroupChild: UInt64 = 1 << 26
    /// The flags of ActiveTaskStatus.
    private enum StatusFlags {
        static let isCanceled: UInt64 = 0x100
        static let isRunning: UInt64 = 0x800
        static let isEnqueued: UInt64 = 0x1000
        static let isComplete: UInt64 = 0x2000
        static let hasDependency: UInt64 = 0x4000
    }
    /// TaskStatusRecordKind.
    private enum RecordKind {
        static let dependency: UInt64 = 0
        static let group: UInt64 = 2
        static let executorPreference: UInt64 = 5
        static let name: UInt64 = 6
    }
    /// The words of a group, which is a status record behind a table of functions: flags, parent, first and last child.
    private enum GroupWords {
        static let flags = 1
        static let firstChild = 3
        static let count = 5
    }
    /// The words of a dependency's record: flags, parent, target (two words), kind, the waiting task.
    private enum RecordWords {
        static let target = 2
        static let kind = 4
        static let task = 5
        static let count = 6
    }

    private let memory: any MemoryReading
    let metadata: UInt64
    private let adapter: UInt64

    package init(_ memory: any MemoryReading, metadata: UInt64, adapter: UInt64 = 0) {
        self.memory = memory
        self.metadata = metadata
        self.adapter = adapter
    }

    /// Returns the task that two readings agree about; `nil` if there is none, it is complete, or it keeps changing.
    package func stableTask(at address: UInt64) -> SwiftTask? {
        var last = task(at: address)
        // A task that changes is read again: it may have been about to wait.
        for _ in 0..<3 {
            guard let known = last else { return nil }
            let again = task(at: address)
            if again == known { return known }
            last = again
        }
        return nil
    }

    func task(at address: UInt64) -> SwiftTask? {
        guard address % 16 == 0, let words = memory.words(at: address, count: Word.count),
            words[Word.metadata] == metadata, words[Word.flags] & Self.kindMask == 0
        else { return nil }
        let (flags, status) = (words[Word.flags], words[Word.status])
        guard status & StatusFlags.isComplete == 0 else { return nil }
        let isRunning = status & StatusFlags.isRunning != 0
        var task = SwiftTask(
            address: address, id: Self.id(words), name: name(words[Word.records]),
            isCanceled: status & StatusFlags.isCanceled != 0, isRunning: isRunning)
        if flags & Self.isChild != 0 {
            guard let parent = id(at: words[Word.parent]) else { return nil }
            (task.parent, task.parentID) = (words[Word.parent], parent)
        }
        if flags & Self.isGroupChild != 0 { task.group = words[Word.group] }
        if isRunning {
            task.preference = preference(words[Word.records])
            return task
        }
        // A task that neither runs nor waits is about to do one of them.
        guard status & StatusFlags.hasDependency != 0,
            var dependency = dependency(words[Word.dependency], of: address),
            (status & StatusFlags.isEnqueued != 0) == dependency.isExecutor
        else { return nil }
        if case .task(let awaited) = dependency {
            guard let id = id(at: awaited) else { return nil }
            task.awaitedID = id
        }
        // The executor of a job is 0, also if the task prefers one.
        if dependency == .executor(0), let preferred = preference(words[Word.records]) {
            dependency = .taskExecutor(preferred)
        }
        task.dependency = dependency
        task.callers = callers(words[Word.resumeFunction], words[Word.resumeContext])
        return task
    }

    /// Returns the id and the name of the task whose status lock, a mutex in its memory, is at an address; `nil` if there
    /// is none.
    package func task(withStatusLockAt address: UInt64) -> (id: UInt64, name: String?)? {
        let task = address &- UInt64(Word.mutex * 8)
        guard metadata != 0, address > task, let id = id(at: task), id != 0,
            let records = memory.word(at: task &+ UInt64(Word.records * 8))
        else { return nil }
        return (id, name(records).map { String(decoding: $0, as: UTF8.self) })
    }

    /// Returns the addresses of a group's child tasks; `nil` if two readings do not agree, or there are too many.
    package func children(ofGroup group: UInt64) -> [UInt64]? {
        guard let first = childrenOnce(ofGroup: group), childrenOnce(ofGroup: group) == first else { return nil }
        return first
    }

    private func childrenOnce(ofGroup group: UInt64) -> [UInt64]? {
        guard let words = memory.words(at: group, count: GroupWords.count),
            words[GroupWords.flags] & Self.kindMask == RecordKind.group
        else { return nil }
        var children: [UInt64] = []
        var next = words[GroupWords.firstChild]
        while next != 0 {
            guard children.count < Self.maximumChildren, id(at: next) != nil,
                let words = memory.words(at: next, count: Word.count), words[Word.flags] & Self.isGroupChild != 0,
                words[Word.group] == group
            else { return nil }
            children.append(next)
            next = words[Word.nextChild]
        }
        return children
    }

    /// Whether there is a task at an address.
    package func isTask(at address: UInt64) -> Bool { id(at: address) != nil }

    /// The frames of async functions, and the words of each, that ``traces(at:)`` has.
    private static let traced = (frames: 8, words: 16)
    /// The words around another job, which may be an actor: its state, and the job that it runs next.
    private static let tracedJob = (before: 4, words: 16)

    /// Returns a value that is another one once the job at an address has run, as far as that left traces in its memory: the
    /// id of a task, where it resumes, and the variables of its async functions.
    ///
    /// A task that has paused and a new one may wait at the same address as before. The same value is no proof that neither
    /// is: a task may run and leave all as it was. Nothing is copied but into the value.
    package func traces(at address: UInt64) -> Int {
        var traces = Hasher()
        traces.combine(address)
        guard id(at: address) != nil, let words = memory.words(at: address, count: Word.count) else {
            traces.combine(memory.words(at: address &- UInt64(Self.tracedJob.before * 8), count: Self.tracedJob.words))
            return traces.finalize()
        }
        for word in [Word.flags, Word.idHigh, Word.resumeFunction, Word.resumeContext] { traces.combine(words[word]) }
        // One that has not begun has no variables: the words behind its first frame are others' of the heap.
        guard adapter == 0 || words[Word.resumeFunction] != adapter else { return traces.finalize() }
        var context = words[Word.resumeContext]
        for _ in 0..<Self.traced.frames {
            guard context != 0, let frame = memory.words(at: context, count: Self.traced.words) else { break }
            traces.combine(frame)
            context = frame[0]
        }
        return traces.finalize()
    }

    /// Returns where the task at an address resumes, whether or not it is one.
    func resumeFunction(ofTask address: UInt64) -> UInt64? {
        memory.words(at: address, count: Word.resumeFunction + 1)?.last
    }

    private static func id(_ words: [UInt64]) -> UInt64 { words[Word.flags] >> 32 | words[Word.idHigh] << 32 }

    /// Returns the id of the task at `address`; `nil` if there is none.
    private func id(at address: UInt64) -> UInt64? {
        guard address % 16 == 0, let words = memory.words(at: address, count: Word.idHigh + 1),
            words[Word.metadata] == metadata, words[Word.flags] & Self.kindMask == 0
        else { return nil }
        return Self.id(words)
    }

    private func dependency(_ record: UInt64, of task: UInt64) -> SwiftTask.Dependency? {
        guard let words = memory.words(at: record, count: RecordWords.count),
            words[0] & Self.kindMask == RecordKind.dependency,
            words[RecordWords.task] == task
        else { return nil }
        let target = words[RecordWords.target]
        switch words[RecordWords.kind] & 0xffff_ffff {
        case 1: return .task(target)
        case 2: return .continuation
        case 3: return .group(target)
        case 4: return .executor(target)
        default: return nil
        }
    }

    private func name(_ first: UInt64) -> [UInt8]? {
        record(RecordKind.name, words: 3, from: first).flatMap { memory.string(at: $0[2]) }
            .map { Array($0.utf8.prefix(CUnwindEngine.maximumTaskName)) }
    }

    /// The record's own words are flags, of one byte, and the executor.
    private func preference(_ first: UInt64) -> UInt64? {
        record(RecordKind.executorPreference, words: 4, from: first).flatMap { $0[3] == 0 ? nil : $0[3] }
    }

    /// Returns the first words of a task's last record of a kind: flags, the record before, and its own ones.
    private func record(_ kind: UInt64, words count: Int, from first: UInt64) -> [UInt64]? {
        var at = first
        // A damaged list may be circular: it ends at the bound.
        for _ in 0..<Self.maximumRecords where at != 0 {
            guard let words = memory.words(at: at, count: 3) else { return nil }
            if words[0] & Self.kindMask == kind { return memory.words(at: at, count: count) }
            at = words[1]
        }
        return nil
    }

    private func callers(_ resume: UInt64, _ context: UInt64) -> [UInt64] {
        var callers = resume == adapter ? closures(before: context) : [resume]
        var at = context
        while at != 0, callers.count < Self.maximumCallers, let words = memory.words(at: at, count: 2) {
            // The context of a continuation resumes where the task does.
            if callers != [words[1]] { callers.append(words[1]) }
            at = words[0]
        }
        return callers
    }

    /// Returns what a task that has not begun will call, innermost first: closure and thunks; the adapter if unknown.
    private func closures(before context: UInt64) -> [UInt64] {
        // AsyncContextPrefix and FutureAsyncContextPrefix, before the first context, end with entry, values, error.
        guard let prefix = memory.words(at: context &- 24, count: 2), prefix[0] != 0 else { return [adapter] }
        var functions = [prefix[0]]
        var values = prefix[1]
        // The values of a thunk are the async function that it calls, and that one's values, after an object's two words.
        for _ in 0..<Self.maximumThunks {
            guard let words = memory.words(at: values, count: 7)?.dropFirst(2),
                let found = words.indices.dropLast().lazy.compactMap({ index in
                    code(ofAsyncFunction: words[index], near: functions[0]).map { (index, $0) }
                }).first
            else { break }
            functions.insert(found.1, at: 0)
            values = words[found.0 + 1]
        }
        return functions
    }

    private static let maximumThunks = 3
    /// The longest distance between code of one image.
    private static let maximumDistance: UInt64 = 1 << 28

    /// The code of the async function that a pointer stands for: { distance, size of the context }, in the read-only data
    /// of the image that has the code `near` it.
    private func code(ofAsyncFunction pointer: UInt64, near: UInt64) -> UInt64? {
        guard pointer % 8 == 0, let word = memory.word(at: pointer) else { return nil }
        let (distance, size) = (Int64(Int32(truncatingIfNeeded: word)), word >> 32)
        let code = pointer &+ UInt64(bitPattern: distance)
        guard size >= 16, size <= 1 << 16, size % 16 == 0, distance != 0,
            max(code, near) - min(code, near) < Self.maximumDistance,
            max(pointer, near) - min(pointer, near) < Self.maximumDistance
        else { return nil }
        return code
    }

    /// The task of the checked continuation whose object is at an address; 0 once it was resumed.
    func ownerOfContinuation(at address: UInt64) -> UInt64? { memory.word(at: address &+ 16) }

    /// Returns the class name of the object at `address`, and whether it is an actor's; `nil` if it has no Swift class.
    package func swiftClass(of address: UInt64) -> (name: String, isActor: Bool)? {
        // swift/ABI/Metadata.h without Objective-C: the description is the sixth word of a class's metadata. It is
        // { flags, parent, name }, where the name is the distance to a C string.
        guard address != 0, let metadata = memory.word(at: address), let class_ = memory.words(at: metadata, count: 6),
            class_[0] == 0, let flags = memory.integer(at: class_[5]), flags & 0x1f == 16,
            let distance = memory.integer(at: class_[5] &+ 8),
            let name = memory.string(at: class_[5] &+ 8 &+ UInt64(bitPattern: Int64(distance)))
        else { return nil }
        // TypeContextDescriptorFlags::Class_IsActor, in the upper half.
        return (name, flags & 1 << (16 + 7) != 0)
    }
}

extension SwiftTask.Dependency {
    fileprivate var isExecutor: Bool { if case .executor = self { true } else { false } }
}
