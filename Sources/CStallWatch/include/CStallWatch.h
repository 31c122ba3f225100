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

#ifdef __cplusplus
}
#endif

#endif  // CSTALLWATCH_H
