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

/// A token of dispatch_once(3), whose initializer a thread named `initializer` runs.
///
/// `@unchecked Sendable`: the token is made for being used by several threads, and its address never changes.
final class SlowOnceInit: @unchecked Sendable {
    private let token = UnsafeMutablePointer<Int>.allocate(capacity: 1)
    private let duration: Duration
    private let hasBegun = Gate()

    /// The initializer is running when this returns.
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

    /// Runs the initializer, or waits for the thread that does.
    func run() {
        demo_once(
            token,
            { argument in
                // `run` gave it, and keeps this object alive meanwhile.
                let once = argument.map { Unmanaged<SlowOnceInit>.fromOpaque($0).takeUnretainedValue() }
                once?.hasBegun.open()
                sleepTooLong(for: once?.duration ?? .zero)
            }, Unmanaged.passUnretained(self).toOpaque()
        )
    }
}
