// A library of an app: a program calls its functions through the PLT.
import Glibc

nonisolated(unsafe) private var total = 0

/// Sleeps, and works afterwards, so that it has a frame.
@inline(never) public func linger(_ milliseconds: Int) -> Int {
    usleep(UInt32(milliseconds) * 1_000)
    total &+= milliseconds
    return total
}

/// Ends in a call.
public func openSafe(_ milliseconds: Int) -> Int {
    total &+= 1
    return linger(milliseconds)
}
