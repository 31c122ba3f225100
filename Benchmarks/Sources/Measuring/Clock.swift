import Glibc

/// Nanoseconds of CLOCK_MONOTONIC.
package func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Returns the mean time of `count` runs of `body`, in nanoseconds.
package func meanNanoseconds(_ count: Int, _ body: () -> Void) -> Double {
    let began = now()
    for _ in 0..<count { body() }
    return Double(now() - began) / Double(count)
}

/// The reason why a cost cannot be measured on this machine.
package struct CannotMeasure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
