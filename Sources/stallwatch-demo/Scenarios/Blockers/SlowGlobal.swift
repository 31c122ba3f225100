import CDemo
import Synchronization

// What is initialized once, by a thread that takes its time, while another one wants to use it.

/// A global that Swift initializes when it is first used.
enum SlowGlobal {
    private static let duration = Mutex<Duration?>(nil)
    private static let isBeingInitialized = Gate()

    static let value: Int = {
        isBeingInitialized.open()
        sleepTooLong(for: duration.withLock { $0 } ?? .zero)
        return 1
    }()

    /// Lets a thread named `initializer` begin; false if one has before.
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

/// Uses the global, and so waits for its initializer.
@inline(never)
func useTheGlobal() {
    precondition(SlowGlobal.value == 1, "it has been initialized")
}
