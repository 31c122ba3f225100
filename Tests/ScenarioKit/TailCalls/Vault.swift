// Functions that an optimizer leaves no frame of. They use a private variable, so that other modules call them and have
// no copies of them. Of functions with the same code the optimizer keeps one body.
import Glibc

nonisolated(unsafe) private var total = 0

/// The length in microseconds of what the functions take for a millisecond.
public nonisolated(unsafe) var unit: UInt32 = 1_000

/// Sleeps, and works afterwards, so that it has a frame.
@inline(never) public func doze(_ milliseconds: Int) -> Int {
    usleep(UInt32(milliseconds) &* unit)
    total &+= milliseconds
    return total
}

/// Ends in a call.
public func hashPassword(_ rounds: Int) -> Int {
    total &+= rounds
    return doze(rounds &* 12)
}

/// Ends in a call that may throw.
public func openVault(_ key: Int) throws -> Int {
    total &+= key
    return try decrypt(key)
}

@inline(never) private func decrypt(_ key: Int) throws -> Int {
    if key < 0 { throw POSIXFailure() }
    return doze(key) &+ 1
}

private struct POSIXFailure: Error {}

/// Has the same code as ``importGroups(_:)``, but for a constant.
public func importUsers(_ count: Int) -> Int {
    for index in 0..<count { total = total &* 37 &+ index }
    sched_yield()
    return doze(121)
}

/// Has the same code as ``importUsers(_:)``, but for a constant.
public func importGroups(_ count: Int) -> Int {
    for index in 0..<count { total = total &* 37 &+ index }
    sched_yield()
    return doze(122)
}

/// Has the same code as ``searchAll(_:_:)``.
public func indexAll<Value: Hashable>(_ value: Value, _ count: Int) -> Int {
    for index in 0..<count { total = total &* 41 &+ index ^ value.hashValue }
    return doze(120) &+ total
}

/// Has the same code as ``indexAll(_:_:)``.
public func searchAll<Value: Hashable>(_ value: Value, _ count: Int) -> Int {
    for index in 0..<count { total = total &* 41 &+ index ^ value.hashValue }
    return doze(120) &+ total
}

/// Has the same code as ``restGroups()``.
public func restUsers() {
    usleep(120 &* unit)
    total &+= 7
}

/// Has the same code as ``restUsers()``.
public func restGroups() {
    usleep(120 &* unit)
    total &+= 7
}

/// Has two properties with the same code.
public struct Shelf {
    /// Creates a shelf.
    public init() {}

    /// Has the same code as ``digest``.
    public var checksum: Int {
        for index in 0..<20 { total = total &* 43 &+ index }
        return doze(120) &+ total
    }

    /// Has the same code as ``checksum``.
    public var digest: Int {
        for index in 0..<20 { total = total &* 43 &+ index }
        return doze(120) &+ total
    }
}
