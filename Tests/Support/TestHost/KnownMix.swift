import Glibc

/// Three functions that share a thread's time by the clock: 70 % and 10 % computing, 20 % asleep.
///
/// A phase ends at a time that was fixed before it began, so a thread that gets no CPU for a while catches up.
enum KnownMix {
    /// The length of a round in nanoseconds.
    private static let round: UInt64 = 1_000_000_000

    /// Runs rounds until the process is killed.
    static func run() {
        var begin = now()
        while true {
            computeForMostOfTheTime(until: begin + round / 100 * 70)
            sleepForSomeOfTheTime(until: begin + round / 100 * 90)
            computeForALittleOfTheTime(until: begin + round)
            begin += round
        }
    }
}

@inline(never)
private func computeForMostOfTheTime(until end: UInt64) {
    while now() < end {}
}

@inline(never)
private func sleepForSomeOfTheTime(until end: UInt64) {
    var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
    let result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil)
    withExtendedLifetime(result) {}
}

@inline(never)
private func computeForALittleOfTheTime(until end: UInt64) {
    while now() < end {}
}
