import CoreFoundation
import Glibc
import StallWatch

/// Turns of the main run loop between two marks, to count their cost.
///
/// A mark is a call of close(2) with an invalid descriptor, visible to the counter of system calls. The library
/// Tests/Support/Preload/allocations.c counts allocations, if it is preloaded.
struct CountedTurns {
    private enum Watching: String {
        case bare
        case monitored
        /// An observer that allocates and makes a system call each time: the reference, which the counts must show.
        case noisy
    }

    private static let mark: Int32 = -4711
    /// The number of turns before the first mark, for one-time work.
    private static let warmUp = 500

    private let isTimer: Bool
    private let count: Int
    private let watching: Watching

    init(_ arguments: ArraySlice<String>) {
        let words = Array(arguments)
        guard words.count == 3, let count = Int(words[1]), let watching = Watching(rawValue: words[2]) else { exit(64) }
        isTimer = words[0] == "timer"
        self.count = count
        self.watching = watching
    }

    func run() throws {
        var monitor: StallMonitor?
        switch watching {
        case .bare: break
        case .monitored:
            monitor = try .ofMainRunLoop(.init(threshold: .milliseconds(250), outputs: []))
        case .noisy:
            let observer = CFRunLoopObserverCreateWithHandler(nil, CFRunLoopActivity.beforeSources.rawValue, true, 0) {
                _, _ in
                free(malloc(64))
                getppid()
            }
            CFRunLoopAddObserver(CFRunLoopGetMain(), observer, kCFRunLoopDefaultMode)
        }
        turn(Self.warmUp)
        let allocations = Self.allocations()
        let before = allocations?() ?? 0
        close(Self.mark)
        turn(count)
        close(Self.mark)
        let after = allocations?() ?? 0
        monitor?.stop()
        tell("A \(after - before)")
        if let monitor { tell("T \(monitor.statistics.loops.first?.turns ?? 0)") }
    }

    private func turn(_ count: Int) {
        let left = Countdown(count)
        let loop = CFRunLoopGetMain()
        if isTimer {
            let timer = CFRunLoopTimerCreateWithHandler(nil, CFAbsoluteTimeGetCurrent(), 0.0005, 0, 0) { _ in
                left.next()
            }
            CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode)
            CFRunLoopRun()
            CFRunLoopTimerInvalidate(timer)
        } else {
            var context = CFRunLoopSourceContext()
            context.info = Unmanaged.passUnretained(left).toOpaque()
            context.perform = { info in
                guard let info else { return }
                Unmanaged<Countdown>.fromOpaque(info).takeUnretainedValue().next()
            }
            let source = CFRunLoopSourceCreate(nil, 0, &context)
            left.source = source
            CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
            CFRunLoopSourceSignal(source)
            CFRunLoopRun()
            CFRunLoopSourceInvalidate(source)
        }
        withExtendedLifetime(left) {}
    }

    /// The preloaded function that returns the number of the calling thread's allocations.
    private static func allocations() -> (@convention(c) () -> Int)? {
        // RTLD_DEFAULT: a cast of 0, which Swift does not import.
        dlsym(nil, "counted_allocations").map {
            // The library declares it as `long counted_allocations(void)`.
            unsafeBitCast($0, to: (@convention(c) () -> Int).self)
        }
    }
}

/// Counts turns down and stops the loop; used only on the main thread.
private final class Countdown {
    private var left: Int
    var source: CFRunLoopSource?

    init(_ count: Int) {
        left = count
    }

    func next() {
        left -= 1
        if left == 0 {
            CFRunLoopStop(CFRunLoopGetMain())
        } else if let source {
            CFRunLoopSourceSignal(source)
        }
    }
}
