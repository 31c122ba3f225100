import StackCapture

extension StallRecord.Sample {
    var wholeStack: [UInt64]? {
        guard let stack = try? stack.get(), stack.isComplete else { return nil }
        return stack.frames.map(\.address)
    }

    /// Whether the stack is incomplete because the thread was only read, and might not be stopped.
    var lacksStop: Bool {
        guard case .success(let stack) = stack else { return false }
        return !wasStopPermitted && stack.method == .read && !stack.isComplete
    }

    fileprivate func completes(_ other: StallRecord.Sample) -> Bool {
        guard case (.success(let whole), .success(let part)) = (stack, other.stack), whole.isComplete else {
            return false
        }
        return whole.frames.map(\.address).starts(with: part.frames.map(\.address))
    }

    /// Whether the next attempt may well succeed: the thread moved, had no CPU, or would have had to be stopped.
    var isPassingFailure: Bool {
        guard case .failure(let error) = stack else { return false }
        return [.notStopped, .notBlocked, .moved, .outOfTime].contains(error)
    }

    /// Whether the watchdog had no time to look at the thread.
    var isOutOfTime: Bool {
        guard case .failure(.outOfTime) = stack else { return false }
        return true
    }

    fileprivate var sighting: SampleWeights.Sighting {
        let isRunning = (try? stack.get())?.threadState == .running
        return SampleWeights.Sighting(from: firstSeen, to: lastSeen, isRunning: isRunning, used: used)
    }

    /// Makes the ages count from `start`, of a sample whose ages are moments in monotonic nanoseconds.
    mutating func count(from start: UInt64) {
        (seenFrom, seenUntil) = (firstSeen &- min(start, firstSeen), lastSeen &- min(start, lastSeen))
        age &-= min(start, age)
    }

    fileprivate var firstSeen: UInt64 { min(seenFrom, age) }

    fileprivate var lastSeen: UInt64 { max(seenUntil, age) }

    fileprivate var isRead: Bool { (try? stack.get())?.method == .read }

    /// Returns the number of frames in which the stacks differ; the largest number if only one of them could be taken.
    fileprivate func difference(from other: StallRecord.Sample) -> Int {
        switch (stack, other.stack) {
        case (.success(let stack), .success(let next)):
            let pairs = zip(stack.frames.reversed(), next.frames.reversed())
            let common = pairs.prefix { $0.address == $1.address }.count
            let frames = max(stack.frames.count, next.frames.count) - common
            // The same code for another request is another place.
            return stack.context == next.context ? frames : max(frames, 1)
        case (.failure(let error), .failure(let next)):
            return error.description == next.description && workers.isEmpty && other.workers.isEmpty ? 0 : .max
        default:
            return .max
        }
    }
}

extension [StallRecord.Sample] {
    /// Returns whether the thread has provably not run since the last sample, which therefore shows it now, too.
    ///
    /// The last sample was read while the thread was blocked, and the thread has not got a CPU since right before that:
    /// the kernel counts a time slice before the thread runs in it. `slices` is 0 if it does not count them.
    func isCurrent(slices: UInt64) -> Bool {
        guard slices != 0, let last, last.isValid else { return false }
        return last.slices == slices && last.isRead
    }

    /// Extends the last sample to a later age, at a moment in monotonic nanoseconds: the thread is still in that place.
    mutating func extendLast(to age: UInt64, at time: UInt64, used: UInt64) {
        guard let index = indices.last else { return }
        self[index].seenUntil = Swift.max(self[index].seenUntil, age)
        self[index].used = self[index].used.map { ($0.from, used) }
        self[index].timesSeen += 1
        guard let last = self[index].observations.indices.last else { return }
        self[index].observations[last].until = time
        self[index].observations[last].used = self[index].observations[last].used.map { ($0.from, used) }
    }

    /// Adds a sample of a turn, and keeps the number of samples within ``StallRecord/maximumSamples``.
    ///
    /// A sample with the same stack as the last one becomes a part of it, and takes its place if it completes the stack.
    /// Over the limit, the two neighbors whose stacks differ in the fewest frames become one, because they say nearly the
    /// same; of equal pairs, the one that stands for the least time. The stack that stands for more time is kept.
    mutating func add(_ sample: StallRecord.Sample) {
        if let last, last.isValid == sample.isValid, last.difference(from: sample) == 0 {
            merge(count - 1, sample, keepsFirst: true)
        } else if let last, last.isValid == sample.isValid, last.lacksStop, sample.completes(last) {
            merge(count - 1, sample, keepsFirst: false)
        } else {
            append(sample)
        }
        guard count > StallRecord.maximumSamples else { return }
        let weights = weights(duration: self[count - 1].lastSeen)
        // The last sample stays as it is: it is what the next one is compared with.
        let pairs = (0..<count - 2).map { index in
            (index, self[index].difference(from: self[index + 1]), weights[index] + weights[index + 1])
        }
        guard let (index, _, _) = pairs.min(by: { ($0.1, $0.2) < ($1.1, $1.2) }) else { return }
        let second = remove(at: index + 1)
        merge(index, second, keepsFirst: weights[index] >= weights[index + 1])
    }

    private mutating func merge(_ index: Int, _ second: StallRecord.Sample, keepsFirst: Bool) {
        let first = self[index]
        if !keepsFirst { self[index] = second }
        self[index].seenFrom = first.firstSeen
        self[index].seenUntil = second.lastSeen
        self[index].used = first.used.flatMap { earlier in second.used.map { (earlier.from, $0.to) } }
        self[index].timesSeen = first.timesSeen + second.timesSeen
        self[index].wasStopPermitted = first.wasStopPermitted || second.wasStopPermitted
        self[index].slices = second.isRead ? second.slices : 0
        self[index].observations = first.observations + second.observations
    }

    /// Returns the nanoseconds that each sample stands for: an invalid one, of a later turn, only if none is valid.
    func weights(duration: UInt64) -> [UInt64] {
        let valid = indices.filter { self[$0].isValid }
        let counted = valid.isEmpty ? Swift.Array(indices) : valid
        var weights = [UInt64](repeating: 0, count: count)
        let known = SampleWeights.weights(counted.map { self[$0].sighting }, duration: duration)
        for (index, weight) in zip(counted, known) { weights[index] = weight }
        return weights
    }
}
