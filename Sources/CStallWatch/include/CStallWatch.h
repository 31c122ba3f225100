// CStallWatch reports the turns of a loop in C or C++ (GLib, libuv, SDL, Qt, a game loop) to StallWatch.
//
// The Swift part of the program creates a `LoopProbe`, lets a monitor watch it and passes its `handle` to the loop. The
// loop calls stallwatch_begin_turn when it has left its wait, and stallwatch_end_turn when it is about to wait again:
//
//     for (;;) {
//         int count = poll(descriptors, descriptor_count, timeout);
//         stallwatch_begin_turn(handle);
//         handle_events(descriptors, count);
//         stallwatch_end_turn(handle);
//     }
//
// The program has to link the StallWatch library, which defines both functions. A pair of calls costs two clock reads
// and a few atomic stores. It posts a semaphore only to wake the watchdog: for the first turn after all loops have
// waited, and when a stall ends. On platforms other than Linux both functions do nothing.

#ifndef CSTALLWATCH_H
#define CSTALLWATCH_H

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__clang__)
#define STALLWATCH_NULLABLE
#else
#define STALLWATCH_NULLABLE _Nullable
#endif

/// Begins a turn: the loop has left its wait. If the previous turn has not ended, it ends here.
///
/// `handle` is the value of `LoopProbe.handle`; NULL makes the call do nothing. The probe must exist for as long as the
/// loop uses the handle. Call this on the loop's own thread only. Not async-signal-safe.
void stallwatch_begin_turn(void *STALLWATCH_NULLABLE handle);

/// Ends the turn: the loop is about to wait. Does nothing if no turn has begun.
///
/// The rules for `handle` and the thread are those of stallwatch_begin_turn. Not async-signal-safe.
void stallwatch_end_turn(void *STALLWATCH_NULLABLE handle);

/// Begins a scope of the calling thread: a stall until the matching stallwatch_pop_context has the context `label`, as in
///
///     stallwatch_push_context("import", NULL, NULL);
///     import_everything();
///     stallwatch_pop_context();
///
/// Scopes may be nested; the innermost one counts. `label` is in UTF-8 and is copied; if it is longer than 128 bytes or
/// not UTF-8, it is cut there. NULL is an empty one. `trace_id` is 32 hexadecimal digits and `span_id` 16, or NULL; other
/// texts are ignored. Costs two allocations. Not async-signal-safe.
void stallwatch_push_context(const char *STALLWATCH_NULLABLE label, const char *STALLWATCH_NULLABLE trace_id,
                             const char *STALLWATCH_NULLABLE span_id);

/// Ends the calling thread's innermost scope of stallwatch_push_context. Does nothing if there is none, or if a scope of
/// Swift code is further inside. A thread that ends before it leaks its scopes. Not async-signal-safe.
void stallwatch_pop_context(void);

#ifdef __cplusplus
}
#endif

#endif  // CSTALLWATCH_H
