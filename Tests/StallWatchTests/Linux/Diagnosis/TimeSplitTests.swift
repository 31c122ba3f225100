import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// Creates a reading with times in milliseconds.
func reading(
    at time: UInt64, cpu: UInt64, queue: UInt64 = 0, state: Character = "S", switches: UInt64 = 0, waited: UInt64 = 0
) -> ThreadReading {
    var reading = ThreadReading(time: time * 1_000_000, onCPU: cpu * 1_000_000)
    // The kernel counts time slices, as often as the thread waits.
    (reading.runQueue, reading.slices) = (queue * 1_000_000, switches + 1)
    reading.state = state.asciiValue ?? 0
    (reading.voluntarySwitches, reading.involuntarySwitches) = (switches, 0)
    reading.shown = state == "R" ? .running : .faulting
    reading.waitChannel = state == "R" ? nil : "folio_wait_bit_common"
    reading.loopWaited = waited * 1_000_000
    return reading
}

private func timeSplit(_ readings: [ThreadReading], from start: UInt64, to end: UInt64) -> TimeSplit? {
    TimeSplit(readings: readings, from: start * 1_000_000, to: end * 1_000_000)
}

@Suite struct TimeSplitTests {
    /// The readings of a thread, a turn, the times on a CPU, without one and blocked, and the uncertainty, in milliseconds.
    private static let cases: [(String, [ThreadReading], ClosedRange<UInt64>, [UInt64])] = [
        (
            "readings at both ends are exact",
            [reading(at: 100, cpu: 5, queue: 1), reading(at: 400, cpu: 105, queue: 51)],
            100...400, [100, 50, 150, 0]
        ),
        (
            "schedstat shows a wait for a CPU only when it ends",
            [reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 20, state: "R")], 0...100, [20, 80, 0, 0]
        ),
        // CPU steal takes half of the first part; none of the thread's clocks shows it.
        (
            "a later wait does not hide CPU steal",
            [
                reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 50, state: "R"),
                reading(at: 200, cpu: 50, switches: 1),
            ], 0...200, [50, 50, 100, 0]
        ),
        // The wait continues at the second reading, when schedstat does not show it yet, and ends 10 ms later.
        (
            "a wait for a CPU counts once",
            [
                reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 60, state: "R"),
                reading(at: 200, cpu: 100, queue: 50, switches: 1),
            ], 0...200, [100, 50, 50, 0]
        ),
        (
            "an idle loop's work belongs to the turn",
            [(0, 0), (900, 0), (1_040, 40), (1_100, 40)].map { reading(at: $0, cpu: $1) }, 1_000...1_100,
            [40, 0, 60, 40]
        ),
        // The thread was on a CPU for all of the time before the turn, and for none of the turn.
        (
            "a busy loop's earlier work is subtracted",
            [(0, 0), (100, 100), (180, 150), (300, 150)].map { reading(at: $0, cpu: $1) }, 150...300, [0, 0, 150, 30]
        ),
        // A busy turn until 100 ms, a wait of 298 ms, a turn of 2 ms, and the late turn from 400 ms on.
        (
            "earlier waits of the loop are not busy time",
            [
                reading(at: 0, cpu: 0), reading(at: 100, cpu: 50), reading(at: 650, cpu: 300, waited: 298),
                reading(at: 1_000, cpu: 300, waited: 298),
            ], 400...1_000, [249, 0, 351, 1]
        ),
        // The thread was ready for 60 of the 140 ms from 60 ms on, of which 100 are of the turn.
        (
            "the uncertainty is also that of the wait for a CPU",
            [
                reading(at: 0, cpu: 0), reading(at: 60, cpu: 0), reading(at: 200, cpu: 20, queue: 60),
                reading(at: 300, cpu: 20, queue: 60),
            ], 100...300, [20, 60, 120, 40]
        ),
        // The loop's first turn, during which the monitor starts: the first reading's state holds for the time before.
        first("R", cpu: 100, onCPU: 120), first("R", cpu: 20, onCPU: 60), first("S", cpu: 100, onCPU: 40),
        first("S", cpu: 20, onCPU: 40),
    ]

    private static func first(
        _ state: Character, cpu: UInt64, onCPU: UInt64
    ) -> (String, [ThreadReading], ClosedRange<UInt64>, [UInt64]) {
        (
            "a first turn in state \(state) with \(cpu) ms before",
            [reading(at: 80, cpu: cpu, state: state), reading(at: 200, cpu: cpu + 40, switches: 1)], 0...200,
            [onCPU, 0, 200 - onCPU, min(cpu, 80)]
        )
    }

    @Test(arguments: cases) func `a turn is split by the readings around it`(
        name: String, readings: [ThreadReading], turn: ClosedRange<UInt64>, parts: [UInt64]
    ) throws {
        let split = try #require(timeSplit(readings, from: turn.lowerBound, to: turn.upperBound))
        #expect(
            [split.onCPU, split.runQueue, split.blocked, split.uncertainty] == parts.map { $0 * 1_000_000 }, "\(name)")
    }

    @Test func `without schedstat a mixed stall has an uncertain split`() throws {
        func split(_ first: Character, _ last: Character, switches: UInt64?) throws -> TimeSplit {
            var readings = [
                reading(at: 0, cpu: 0, state: first, switches: 3), reading(at: 100, cpu: 20, state: last, switches: 3),
            ]
            for index in readings.indices { readings[index].slices = 0 }
            readings[1].voluntarySwitches = switches
            return try #require(timeSplit(readings, from: 0, to: 100))
        }
        #expect(try split("S", "S", switches: 3).uncertainty == 0)
        #expect(try split("S", "S", switches: 4).uncertainty == 80_000_000)
        #expect(try split("S", "S", switches: nil).uncertainty == 80_000_000)
        #expect(try split("R", "R", switches: 3).runQueue == 80_000_000)
        #expect(try split("R", "R", switches: 3).uncertainty == 0)
        #expect(try split("R", "S", switches: 4).uncertainty == 80_000_000)
    }

    @Test func `without a count of switches a ready thread may have waited`() throws {
        var readings = [reading(at: 0, cpu: 0, state: "R"), reading(at: 100, cpu: 20, queue: 5, state: "R")]
        for index in readings.indices { readings[index].voluntarySwitches = nil }
        #expect(try #require(timeSplit(readings, from: 0, to: 100)).runQueue == 5_000_000)
    }

    @Test func aTurnWithoutAReadingInsideIsBounded() throws {
        let split = try #require(timeSplit([reading(at: 0, cpu: 0), reading(at: 100, cpu: 30)], from: 20, to: 90))
        #expect(split.onCPU <= 30_000_000)
        #expect(split.onCPU >= split.uncertainty - min(split.uncertainty, split.onCPU))
    }

    @Test func withoutReadingsThereIsNoSplit() {
        #expect(timeSplit([], from: 0, to: 100) == nil)
    }

    @Test func thePartsAlwaysAddUp() throws {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<10_000 {
            var time: UInt64 = 0
            var cpu: UInt64 = 0
            var queue: UInt64 = 0
            let readings = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
                time += .random(in: 0...100, using: &generator)
                cpu += .random(in: 0...150, using: &generator)
                queue += .random(in: 0...150, using: &generator)
                return reading(
                    at: time, cpu: cpu, queue: queue, state: Bool.random(using: &generator) ? "R" : "S",
                    switches: .random(in: 0...1, using: &generator)
                )
            }
            let start = UInt64.random(in: 0...200, using: &generator)
            let end = start + .random(in: 0...300, using: &generator)
            let split = try #require(timeSplit(readings, from: start, to: end))
            #expect(split.duration == (end - start) * 1_000_000)
            #expect(split.uncertainty <= split.duration)
        }
    }
}

@Suite struct SampleWeightsTests {
    private typealias Sighting = SampleWeights.Sighting

    @Test func aSightingEndsHalfWayToTheNextOne() {
        let sightings = [Sighting(from: 30, to: 30), Sighting(from: 50, to: 50), Sighting(from: 90, to: 90)]
        #expect(SampleWeights.weights(sightings, duration: 100) == [40, 30, 30])
    }

    @Test func onlyTheTimeBetweenSightingsIsDivided() {
        let sightings = [Sighting(from: 30, to: 210), Sighting(from: 230, to: 300)]
        #expect(SampleWeights.weights(sightings, duration: 310) == [220, 90])
    }

    /// The thread slept, and then used 15 of the 20 ns between the sightings.
    @Test func `the used time belongs to the sighting in which the thread ran`() {
        let asleep = Sighting(from: 30, to: 210, used: (5, 5))
        let running = Sighting(from: 230, to: 230, isRunning: true, used: (20, 20))
        #expect(SampleWeights.weights([asleep, running], duration: 300) == [215, 85])
        let later = Sighting(from: 230, to: 230, used: (20, 20))
        let first = Sighting(from: 30, to: 210, isRunning: true, used: (5, 5))
        #expect(SampleWeights.weights([first, later], duration: 300) == [225, 75])
    }

    @Test func moreUsedTimeThanPassedCountsAsAllOfIt() {
        let running = Sighting(from: 10, to: 10, isRunning: true, used: (0, 0))
        let asleep = Sighting(from: 20, to: 20, used: (999, 999))
        #expect(SampleWeights.weights([running, asleep], duration: 30) == [20, 10])
    }

    @Test func noObservationsHaveNoWeights() {
        #expect(SampleWeights.weights([], duration: 30).isEmpty)
        #expect(SampleWeights.weights([Sighting(from: 50, to: 60)], duration: 30) == [30])
    }

    @Test func weightsAlwaysAddUp() {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<1_000 {
            var age: UInt64 = 0
            let sightings = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                let from = age + UInt64.random(in: 0...50, using: &generator)
                age = from + UInt64.random(in: 0...50, using: &generator)
                let used = UInt64.random(in: 0...300, using: &generator)
                return Sighting(
                    from: from, to: age, isRunning: .random(using: &generator),
                    used: Bool.random(using: &generator) ? (used, used) : nil)
            }
            let duration = UInt64.random(in: 0...400, using: &generator)
            #expect(SampleWeights.weights(sightings, duration: duration).reduce(0, +) == duration)
        }
    }
}

@Suite struct PageFaultWatchTests {
    @Test func aMissingThreadIsNotWatched() throws {
        let standardInput = try #require(FileStatus(descriptor: STDIN_FILENO))
        #expect(PageFaultWatch(thread: .max) == nil)
        // A failed watch must close nothing: its descriptor is 0, which is standard input.
        #expect(FileStatus(descriptor: STDIN_FILENO)?.identity == standardInput.identity)
    }

    /// A program that closes all descriptors gives their numbers to files of its own.
    @Test(.enabled(if: mayWatchFaults, "needs perf_event_open(2)"))
    func `a watch keeps no descriptor`() throws {
        let thread = try #require(readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) })
        let watch = try #require(PageFaultWatch(thread: thread))
        // Another test may be about to make one.
        let hasNone = (0..<5).contains { _ in
            let files = (directoryEntries("/proc/self/fd") ?? []).compactMap { readLink("/proc/self/fd/\($0.name)") }
            return !files.isEmpty && !files.contains("anon_inode:[perf_event]")
        }
        #expect(hasNone)
        watch.read(ProcessThreads(capturer: StubCapturer()).mapping)
    }

    /// Skipped where the kernel does not report faults or the file cannot be dropped from memory.
    @Test(.enabled(if: mayWatchFaults, "needs perf_event_open(2)"))
    func theFileOfAFaultIsNamed() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/pages"
        let size = 4 << 20
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(file) }
        try #require(pwrite(file, [UInt8](repeating: 7, count: size), size, 0) == size && fsync(file) == 0)
        posix_fadvise(file, 0, size, Int32(POSIX_FADV_DONTNEED))
        let pages = try #require(mmap(nil, size, PROT_READ, MAP_SHARED, file, 0))
        defer { munmap(pages, size) }
        madvise(pages, size, Int32(MADV_RANDOM))
        let thread = try #require(readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) })
        let before = try #require(try ThreadProbe(thread: thread).read())
        let watch = try #require(PageFaultWatch(thread: thread))
        let threads = ProcessThreads(capturer: StubCapturer())
        var sum = 0
        watch.read(threads.mapping)
        // More faults than the ring has room for: the newest records count. What reads them is in memory by now.
        for page in stride(from: 0, to: size, by: 4096) { sum += Int(pages.load(fromByteOffset: page, as: UInt8.self)) }
        watch.read(threads.mapping)
        let after = try #require(try ThreadProbe(thread: thread).read())
        #expect(sum == 7 * size / 4096)
        #expect(watch.file == path || after.majorFaults < before.majorFaults + UInt64(size >> 16))
        #expect(watch.file == nil || after.majorFaults > before.majorFaults)
    }
}

private let mayWatchFaults =
    readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) }.flatMap(PageFaultWatch.init) != nil
