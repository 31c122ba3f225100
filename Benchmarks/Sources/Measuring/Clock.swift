import Glibc

/// Nanoseconds of CLOCK_MONOTONIC.
package func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// The mean time of one of `count` runs of `body`, in nanoseconds.
package func meanNanoseconds(_ count: Int, _ body: () -> Void) -> Double {
    let began = now()
    for _ in 0..<count { body() }
    return Double(now() - began) / Double(count)
}

/// What cannot be measured here, and why.
package struct CannotMeasure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
