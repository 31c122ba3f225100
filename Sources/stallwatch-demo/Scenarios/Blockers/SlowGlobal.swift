import CDemo
import Synchronization

/// A global that Swift initializes at its first use, slowly and on another thread.
enum SlowGlobal {
    private static let duration = Mutex<Duration?>(nil)
    private static let isBeingInitialized = Gate()

    static let value: Int = {
        isBeingInitialized.open()
        sleepTooLong(for: duration.withLock { $0 } ?? .zero)
        return 1
    }()

    /// Starts a thread named `initializer` that uses the global.
    ///
    /// - Returns: `false` if one has started before.
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
