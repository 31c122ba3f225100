import Foundation
import Glibc
import StallWatch

/// The functions of GLib that a main loop needs, from the system's shared library; a program that uses GLib includes
/// its headers instead, and calls the functions of CStallWatch.h in C.
struct GLib: @unchecked Sendable {
    // `@unchecked Sendable`: the addresses of functions never change, because the library stays open.
    private let library: UnsafeMutableRawPointer

    /// The probe of the only GLib loop, static because a poll function has no argument for it.
    static let probe = LoopProbe(label: "glib")

    private typealias Pointer = UnsafeMutableRawPointer
    private typealias PollFunction = @convention(c) (UnsafeMutablePointer<pollfd>?, UInt32, Int32) -> Int32
    private typealias Callback = @convention(c) (Pointer?) -> Int32

    /// Loads the library; throws `NotAvailable` if the system has none.
    static func load() throws(NotAvailable) -> GLib {
        guard let library = dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_LOCAL) else {
            throw NotAvailable(reason: "libglib-2.0.so.0 is not installed")
        }
        return GLib(library: library)
    }

    /// Runs a main loop: twenty short callbacks, one that sleeps for `stall`, whose time it returns, and twenty more.
    func runLoop(stall: Duration) -> Duration {
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
        // The loop waits only in its poll function, so a turn ends before the call and the next begins after it.
        setPoll(context) { descriptors, count, timeout in
            GLib.probe.endTurn()
            let ready = poll(descriptors, nfds_t(count), timeout)
            GLib.probe.beginTurn()
            return ready
        }
        let work = GLibWork(stall: stall)
        let source = newTimeout(1)
        setCallback(
            source,
            { data in
                guard let data else { return 0 }
                Unmanaged<GLibWork>.fromOpaque(data).takeUnretainedValue().callBack()
                // TRUE: the source stays.
                return 1
            }, Unmanaged.passUnretained(work).toOpaque(), nil
        )
        _ = attach(source, context)
        giveBackSource(source)
        while !work.isDone { _ = iterate(context, 1) }
        GLib.probe.endTurn()
        // The last reference: this frees an attached source too.
        giveBackContext(context)
        return withExtendedLifetime(work) { work.injected }
    }

    private func function<Function>(_ name: String) -> Function? {
        // A C function pointer has the size of an address (POSIX, dlsym).
        dlsym(library, name).map { unsafeBitCast($0, to: Function.self) }
    }
}

/// The work of the GLib loop's callback, used only on the loop's thread.
private final class GLibWork {
    private let stall: Duration
    private var calls = 0
    private(set) var injected = Duration.zero

    init(stall: Duration) { self.stall = stall }

    var isDone: Bool { calls > 40 }

    func callBack() {
        if calls == 20 {
            injected = DrivenLoop.time { [stall] in sleepTooLong(for: stall) }
        } else {
            sleepTooLong(for: .milliseconds(2))
        }
        calls += 1
    }
}
