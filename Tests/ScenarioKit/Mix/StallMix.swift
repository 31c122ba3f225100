import Dispatch
import Foundation
import Glibc

/// A stall for any loop, and what is true of its report.
struct MixedStall: Sendable {
    /// The blocker, the holder and the build.
    let name: String
    let block: @Sendable () -> Void
    /// Members of a JSON object, once the stall is over; precision.py says what they mean.
    let truth: @Sendable () -> String
    /// Whether the holder has what the loop will wait for.
    var isReady: @Sendable () -> Bool = { true }
    var end: @Sendable () -> Void = {}
}

extension MixedStall {
    /// A stall in a Swift `function`; `owner` is the name of the thread that holds the lock, `place` its function, and
    /// `calls` a pattern for the calls that the report may name.
    fileprivate init(
        _ function: String, _ cause: String, _ calls: String, lock: String = "", owner: String = "",
        place: String = "", _ milliseconds: Int, _ block: @escaping @Sendable () -> Void
    ) {
        let owners = owner.isEmpty ? "" : "\"\(owner)\""
        let places = place.isEmpty ? "" : "\"\(place)\""
        let truth = """
            "kinds": ["\(cause)"], "lock": "\(lock)", "calls": "\(calls)", "chain": ["\(function)"], \
            "owners": [\(owners)], "places": [\(places)], "times": [\(milliseconds), \(Double(milliseconds) / 2)]
            """
        self.init(name: "\(function) \(place.isEmpty ? "nobody" : place) swift", block: block, truth: { truth })
    }
}

/// Picks stalls: of mix.c in its builds, and in Swift.
struct StallMix: Sendable {
    private typealias Make = @Sendable (_ milliseconds: Int) async -> MixedStall

    private let libraries: [MixLibrary]
    private let directory: String
    private let swift: [Make]

    init(libraries folder: String, directory: String) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        libraries = try names.filter { $0.hasPrefix("mix-") && $0.hasSuffix(".so") }.map {
            try MixLibrary(name: $0, in: folder)
        }
        if libraries.isEmpty { throw NotAvailable(reason: "no mix-*.so is in \(folder)") }
        self.directory = directory
        let pages = (try? ScratchFile(megabytes: 4, in: directory)).map { file in
            Self.plain("touchThePages", "paging", #"\\w+"#) { touchThePages(of: file, for: $0) }
        }
        swift = Self.plainStalls + Self.lockStalls + (pages.map { [$0] } ?? [])
    }

    /// A row of mix.c, in one of its builds, is as likely as a stall in Swift.
    func stall(of milliseconds: Int, _ random: inout SplitMix64) async -> MixedStall {
        let library = libraries[Int.random(in: 0..<libraries.count, using: &random)]
        let pick = Int.random(in: 0..<library.rows.count + swift.count, using: &random)
        if pick >= library.rows.count { return await swift[pick - library.rows.count](milliseconds) }
        let path = "\(directory)/stallwatch-mix-\(getpid())"
        return library.stall(library.rows[pick], of: milliseconds, path, &random)
    }

    private static func plain(
        _ function: String, _ cause: String, _ calls: String, lock: String = "",
        _ stall: @escaping @Sendable (Duration) -> Void
    ) -> Make {
        { time in MixedStall(function, cause, calls, lock: lock, time) { stall(.milliseconds(time)) } }
    }

    private static let plainStalls: [Make] = [
        plain("spinTheCPU", "cpu", "clock_gettime", spinTheCPU),
        plain("allocateAndFree", "cpu", #"clock_gettime|mmap|munmap|\\w*(alloc|free|mem)\\w*"#, allocateAndFree),
        plain("computeAndSleep", "cpu sleep", "clock_gettime|usleep|(clock_)?nanosleep", computeAndSleep),
        plain("sleepTooLong", "sleep", "(clock_)?nanosleep", sleepTooLong),
        plain("sleepInFoundation", "sleep", "(clock_)?nanosleep", sleepInFoundation),
        plain(
            "waitForTheCondition", "lock", #"futex|pthread_cond_\\w+|NSCondition\\.wait"#, lock: "condition",
            waitForTheCondition),
        plain(
            "waitForTheGroup", "lock", #"futex|dispatch_\\w+|DispatchGroup\\.wait|enter|leave"#, lock: "dispatchGroup",
            waitForTheGroup),
        plain(
            "waitForTheSemaphore", "lock", #"futex|dispatch_\\w+|DispatchSemaphore\\.wait"#, lock: "dispatchSemaphore",
            waitForTheSemaphore),
    ]

    private static func held(
        _ function: String, _ lock: String, _ calls: String, _ make: @escaping @Sendable () -> any ThreadLock
    ) -> [Make] {
        let activities: [(holding: HolderActivity, function: String)] = [
            (.sleeping, "sleepTooLong"), (.computing, "spinTheCPU"),
        ]
        return activities.map { activity -> Make in
            { time in
                let held = make().held(by: "mix-holder", activity.holding, for: .milliseconds(time))
                return MixedStall(
                    function, "lock", calls, lock: lock, owner: "mix-holder", place: activity.function, time
                ) { held.pass() }
            }
        }
    }

    private static let lockStalls: [Make] =
        held("PthreadLock.acquire", "pthreadMutex", "futex|pthread_mutex_lock") { PthreadLock() }
        + held("SwiftLock.acquire", "swiftMutex", #"futex|Mutex\\.withLock"#) { SwiftLock() }
        + held("FoundationLock.acquire", "pthreadMutex", "futex|pthread_mutex_lock") { FoundationLock(lock: NSLock()) }
        + [
            { time in
                let queue = await DispatchQueue.busy(for: .milliseconds(time))
                return MixedStall(
                    "waitForTheQueue", "lock", #"futex|dispatch_\\w+"#, lock: "dispatchQueue", owner: "queue-worker",
                    place: "sleepTooLong", time
                ) { waitForTheQueue(queue) }
            }
        ]
}

/// A build of mix.c.
private struct MixLibrary: Sendable {
    // The functions of mix.c; a `struct mix *` is passed as a number.
    private typealias Make = @convention(c) @Sendable (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>) -> UInt
    private typealias Step = @convention(c) @Sendable (UInt) -> Void

    let name: String
    /// The name of each row, and its holders.
    let rows: [(index: Int32, words: [String])]
    private let make: Make
    private let isReady: @convention(c) @Sendable (UInt) -> Bool
    private let hold: @convention(c) @Sendable (UInt, Int32) -> Void
    private let enter, free: Step
    private let truth: @convention(c) @Sendable (UInt) -> UnsafePointer<CChar>

    init(name: String, in folder: String) throws {
        let handle = dlopen("\(folder)/\(name)", RTLD_NOW)
        func find<Function>(_ symbol: String) throws -> Function {
            guard let address = handle.flatMap({ dlsym($0, symbol) }) else {
                throw NotAvailable(reason: "\(folder)/\(name) cannot be loaded, or has no \(symbol)")
            }
            return unsafeBitCast(address, to: Function.self)
        }
        self.name = name
        (make, isReady, hold) = (try find("mix_make"), try find("mix_is_ready"), try find("mix_hold"))
        (enter, free, truth) = (try find("mix_enter"), try find("mix_free"), try find("mix_truth"))
        let row: @convention(c) (Int32) -> UnsafePointer<CChar>? = try find("mix_row")
        var rows: [(index: Int32, words: [String])] = []
        while let text = row(Int32(rows.count)) {
            rows.append((Int32(rows.count), String(cString: text).split(separator: " ").map(String.init)))
        }
        self.rows = rows
    }

    func stall(
        _ row: (index: Int32, words: [String]), of milliseconds: Int, _ path: String, _ random: inout SplitMix64
    ) -> MixedStall {
        let holder = row.words[Int.random(in: 1..<row.words.count, using: &random)]
        let mix = make(row.index, holder, Int32(milliseconds), path)
        if holder == "task" { Task.detached { [hold] in hold(mix, -1) } }
        return MixedStall(
            name: "\(row.words[0]) \(holder) \(name)", block: { [enter] in enter(mix) },
            truth: { [truth, name] in "\"image\": \"\(name)\", " + String(cString: truth(mix)) },
            isReady: { [isReady] in isReady(mix) }, end: { [free] in free(mix) })
    }
}
