internal import CLinux
import Synchronization

/// A lock, with its value, of one process: a child of fork(2) begins with its own.
///
/// A thread that the child does not have may hold the parent's for good, and may have changed half of the value.
package final class ProcessMutex<Value: Sendable>: Sendable {
    private final class Owned: Sendable {
        let process: UInt32
        let state: Mutex<Value>

        init(_ process: UInt32, _ value: Value) {
            self.process = process
            state = Mutex(value)
        }
    }
    /// The address of the lock of the process that used it last, which this keeps alive; 0 before the first use.
    private let current = Atomic<UInt>(0)
    private let process: @Sendable () -> UInt32
    private let first: @Sendable () -> Value

    /// Creates a lock whose value is `first` in each process.
    package convenience init(_ first: @autoclosure @escaping @Sendable () -> Value) {
        self.init(in: { clinux_process_number() }, { first() })
    }

    /// Creates a lock for the process that `process` numbers, which differs in a child.
    package init(in process: @escaping @Sendable () -> UInt32, _ first: @escaping @Sendable () -> Value) {
        (self.process, self.first) = (process, first)
    }

    deinit {
        // The parent's is kept: a thread may have been changing its value at fork(2).
        guard let last = Self.reference(at: current.load(ordering: .acquiring)),
            last.takeUnretainedValue().process == process()
        else { return }
        last.release()
    }

    package func withLock<Result: Sendable, Failure>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try owned.state.withLock { value throws(Failure) in try body(&value) }
    }

    private var owned: Owned {
        let process = self.process()
        var address = current.load(ordering: .acquiring)
        while true {
            if let known = Self.reference(at: address)?.takeUnretainedValue(), known.process == process { return known }
            let new = Unmanaged.passRetained(Owned(process, first()))
            let (isNew, other) = current.compareExchange(
                expected: address, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
            // The parent's is kept: nothing may destroy a lock that is held.
            if isNew { return new.takeUnretainedValue() }
            new.release()
            address = other
        }
    }

    private static func reference(at address: UInt) -> Unmanaged<Owned>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged<Owned>.fromOpaque($0) }
    }
}
