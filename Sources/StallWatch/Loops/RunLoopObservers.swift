internal import CoreFoundation
import Glibc

/// The two observers that turn a CFRunLoop's activities into turns.
///
/// *Begin* comes before every other observer and *end* after every other one, so that the work of the app's own
/// observers counts as part of the turn.
///
/// `@unchecked Sendable`: CFRunLoopAddObserver and CFRunLoopRemoveObserver take the run loop's own lock and may be called
/// on any thread; the stored references never change.
final class RunLoopObservers: @unchecked Sendable {
    private let runLoop: CFRunLoop
    private let modes: [CFRunLoopMode]
    private let begin: CFRunLoopObserver
    private let end: CFRunLoopObserver

    /// Makes the observers and adds them to `runLoop` in `modes`. Returns `nil` only when memory is out.
    init?(runLoop: CFRunLoop, modes: [CFRunLoopMode], recorder: TurnRecorder) {
        guard
            let begin = Self.observer(
                [.entry, .beforeSources, .afterWaiting], order: .min, recorder: recorder,
                callout: { _, activity, info in
                    guard let recorder = RunLoopObservers.recorder(info) else { return }
                    switch activity {
                    case .entry: recorder.enter(at: monotonicNow())
                    case .afterWaiting: recorder.leaveWait(at: monotonicNow())
                    default: recorder.reachSources(now: monotonicNow)
                    }
                }
            ),
            let end = Self.observer(
                [.beforeWaiting, .exit], order: .max, recorder: recorder,
                callout: { _, activity, info in
                    guard let recorder = RunLoopObservers.recorder(info) else { return }
                    if activity == .beforeWaiting {
                        recorder.enterWait(at: monotonicNow())
                    } else {
                        recorder.exit(at: monotonicNow())
                    }
                }
            )
        else { return nil }
        self.runLoop = runLoop
        self.modes = modes
        self.begin = begin
        self.end = end
        for mode in modes {
            CFRunLoopAddObserver(runLoop, begin, mode)
            CFRunLoopAddObserver(runLoop, end, mode)
        }
    }

    /// Takes the observers off the run loop.
    ///
    /// They are removed, never invalidated: CFRunLoopObserverInvalidate gives the context back at once, even while the
    /// loop's thread is about to call out with it (`__CFRunLoopDoObservers` reads the context without retaining it, but
    /// keeps the observer retained). A removed observer gives its context back when the last reference goes.
    func remove() {
        for mode in modes {
            CFRunLoopRemoveObserver(runLoop, begin, mode)
            CFRunLoopRemoveObserver(runLoop, end, mode)
        }
    }

    /// Whether the loop waits in some mode, watched or not. Takes no lock.
    var isWaiting: Bool { CFRunLoopIsWaiting(runLoop) }

    private static func observer(
        _ activities: CFRunLoopActivity, order: CFIndex, recorder: TurnRecorder,
        callout: CFRunLoopObserverCallBack
    ) -> CFRunLoopObserver? {
        var context = CFRunLoopObserverContext(
            version: 0,
            info: Unmanaged.passUnretained(recorder).toOpaque(),
            retain: { info in
                guard let info else { return nil }
                return UnsafeRawPointer(Unmanaged<TurnRecorder>.fromOpaque(info).retain().toOpaque())
            },
            release: { info in
                guard let info else { return }
                Unmanaged<TurnRecorder>.fromOpaque(info).release()
            },
            copyDescription: nil
        )
        return CFRunLoopObserverCreate(nil, activities.rawValue, true, order, callout, &context)
    }

    /// The recorder behind an observer's context, which retains it for as long as the observer exists.
    private static func recorder(_ info: UnsafeMutableRawPointer?) -> TurnRecorder? {
        info.map { Unmanaged<TurnRecorder>.fromOpaque($0).takeUnretainedValue() }
    }
}
