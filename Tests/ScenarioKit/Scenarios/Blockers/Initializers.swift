import CStalls
import Dispatch
import Synchronization

/// A global that Swift initializes at its first use, slowly and on another thread.
enum SlowGlobal {
    private static let duration = Mutex<Duration?>(nil)
    private static let isBeingInitialized = DispatchSemaphore(value: 0)

    static let value: Int = {
        isBeingInitialized.signal()
        sleepTooLong(for: duration.withLock { $0 } ?? .zero)
        return 1
    }()

    /// Starts a thread named `initializer` that uses the global; returns `false` if one has started before.
    static func startInitializing(for duration: Duration) -> Bool {
        let isFirst = Self.duration.withLock { known in
            defer { known = duration }
            return known == nil
        }
        guard isFirst else { return false }
        NamedThread.start("initializer") { ready in
            ready()
            useTheGlobal()
        }
        isBeingInitialized.wait()
        return true
    }
}

/// Uses the global and so waits for its initializer.
@inline(never)
func useTheGlobal() {
    precondition(SlowGlobal.value == 1, "it has been initialized")
}

/// A token of dispatch_once(3), whose initializer a thread named `initializer` runs.
///
/// `@unchecked Sendable`: several threads may use the token, and its address never changes.
final class SlowOnceInit: @unchecked Sendable {
    private let token = UnsafeMutablePointer<Int>.allocate(capacity: 1)
    private let duration: Duration
    private let hasBegun = DispatchSemaphore(value: 0)

    /// Starts the initializer, and returns once it runs.
    init(for duration: Duration) {
        self.duration = duration
        token.initialize(to: 0)
        NamedThread.start("initializer") { [self] ready in
            ready()
            run()
        }
        hasBegun.wait()
    }

    deinit { token.deallocate() }

    func run() {
        stalls_once(
            token,
            { argument in
                // `run` passed this object and keeps it alive.
                let once = argument.map { Unmanaged<SlowOnceInit>.fromOpaque($0).takeUnretainedValue() }
                once?.hasBegun.signal()
                sleepTooLong(for: once?.duration ?? .zero)
            }, Unmanaged.passUnretained(self).toOpaque()
        )
    }
}
