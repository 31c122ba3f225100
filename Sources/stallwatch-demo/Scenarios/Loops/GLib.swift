import Foundation
import Glibc
import StallWatch
import Synchronization

/// The few functions of GLib that a main loop needs, from the shared library of the system, if there is one.
///
/// A program that uses GLib anyway includes its headers, and calls the functions of CStallWatch.h in C.
struct GLib: @unchecked Sendable {
    // `@unchecked Sendable`: addresses of functions, which never change: the library is not closed again.
    private let library: UnsafeMutableRawPointer

    /// The probe of the one GLib loop: a poll function has no argument to carry it.
    static let probe = LoopProbe(label: "glib")

    private typealias Pointer = UnsafeMutableRawPointer
    private typealias PollFunction = @convention(c) (UnsafeMutablePointer<pollfd>?, UInt32, Int32) -> Int32
    private typealias Callback = @convention(c) (Pointer?) -> Int32

    /// Loads the library.
    ///
    /// - Throws: `NotAvailable` when the system has none.
    static func load() throws(NotAvailable) -> GLib {
        guard let library = dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_LOCAL) else {
            throw NotAvailable(reason: "there is no libglib-2.0.so.0")
        }
        return GLib(library: library)
    }

    /// Runs a main loop on the calling thread: `short` short callbacks, one that sleeps for `stall`, and as many more.
    ///
    /// Returns how long the long one took.
    func runLoop(short: Int, stall: Duration) -> Duration {
        guard let newContext: @convention(c) () -> Pointer? = function("g_main_context_new"),
            let setPoll: @convention(c) (Pointer?, PollFunction) -> Void = function("g_main_context_set_poll_func"),
            let newTimeout: @convention(c) (UInt32) -> Pointer? = function("g_timeout_source_new"),
            let setCallback: @convention(c) (Pointer?, Callback, Pointer?, Pointer?) -> Void = function(
                "g_source_set_callback"),
            let attach: @convention(c) (Pointer?, Pointer?) -> UInt32 = function("g_source_attach"),
            let iterate: @convention(c) (Pointer?, Int32) -> Int32 = function("g_main_context_iteration"),
            let giveBackSource: @convention(c) (Pointer?) -> Void = function("g_source_unref"),
            let giveBackContext: @convention(c) (Pointer?) -> Void = function("g_main_context_unref")
        else { return .zero }
        let context = newContext()
        // The loop waits nowhere but in its poll function, so that is where one turn ends and the next begins.
        setPoll(context) { descriptors, count, timeout in
            GLib.probe.endTurn()
            let ready = poll(descriptors, nfds_t(count), timeout)
            GLib.probe.beginTurn()
            return ready
        }
        let work = GLibWork(short: short, stall: stall)
        let source = newTimeout(1)
        setCallback(
            source,
            { data in
                guard let data else { return 0 }
                Unmanaged<GLibWork>.fromOpaque(data).takeUnretainedValue().callBack()
                // TRUE: the source goes on.
                return 1
            }, Unmanaged.passUnretained(work).toOpaque(), nil
        )
        _ = attach(source, context)
        giveBackSource(source)
        while !work.isDone { _ = iterate(context, 1) }
        GLib.probe.endTurn()
        // The last reference: an attached source goes with it.
        giveBackContext(context)
        return withExtendedLifetime(work) { work.injected }
    }

    /// The address of a function, as that type of function pointer.
    private func function<Function>(_ name: String) -> Function? {
        // A C function's pointer is an address, and has its size (POSIX, dlsym).
        dlsym(library, name).map { unsafeBitCast($0, to: Function.self) }
    }
}

/// What a callback of the GLib loop does.
///
/// Used on the loop's thread only.
private final class GLibWork {
    private let short: Int
    private let stall: Duration
    private var calls = 0
    private(set) var injected = Duration.zero

    init(short: Int, stall: Duration) {
        self.short = short
        self.stall = stall
    }

    var isDone: Bool { calls > short * 2 }

    func callBack() {
        if calls == short {
            let begin = SuspendingClock.now
            sleepTooLong(for: stall)
            injected = SuspendingClock.now - begin
        } else {
            sleepTooLong(for: .milliseconds(2))
        }
        calls += 1
    }
}
