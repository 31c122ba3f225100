// CStallWatch: how a loop in C or C++ (GLib, libuv, SDL, Qt, a game's own) tells StallWatch of its turns.
//
// The Swift part of the program makes a `LoopProbe`, lets a monitor watch it and hands over its `handle`. The loop calls
// stallwatch_begin_turn when it has left its wait and stallwatch_end_turn when it is about to wait again:
//
//     for (;;) {
//         int count = poll(descriptors, descriptor_count, timeout);
//         stallwatch_begin_turn(handle);
//         handle_events(descriptors, count);
//         stallwatch_end_turn(handle);
//     }
//
// Both functions are in the StallWatch library, which the program has to link. Both calls together cost two reads of the
// clock and a few atomic stores, and one semaphore post for the first turn after all loops have waited.

#ifndef CSTALLWATCH_H
#define CSTALLWATCH_H

#if !defined(__linux__)
#error "StallWatch supports Linux on x86-64 and aarch64 only: build it for one of these."
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__clang__)
#define STALLWATCH_NULLABLE
#else
#define STALLWATCH_NULLABLE _Nullable
#endif

/// A turn begins: the loop has left its wait. A turn that has not been ended ends here.
///
/// `handle` is what `LoopProbe.handle` gives, and the probe must exist for as long as the loop uses it; NULL does nothing.
/// To be called on the loop's own thread. Async-signal-safe: no.
void stallwatch_begin_turn(void *STALLWATCH_NULLABLE handle);

/// The turn is over: the loop is about to wait. Does nothing if none has begun.
///
/// `handle` and thread: as above. Async-signal-safe: no.
void stallwatch_end_turn(void *STALLWATCH_NULLABLE handle);

#ifdef __cplusplus
}
#endif

#endif  // CSTALLWATCH_H
