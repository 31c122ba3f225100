// Stops whose threads have not left the kernel yet.

#ifndef CUNWIND_PENDING_STOP_H
#define CUNWIND_PENDING_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"
#include "Methods/stop_helper.h"

/// A stop whose thread has not stopped yet, with the memory that its helper uses.
typedef struct cunwind_pending_stop {
  pid_t tid;       ///< 0: this place is free.
  bool is_wanted;  ///< False: the helper only releases the thread.
  cunwind_helper_memory helper;
  cunwind_stack_copy *copy;
} cunwind_pending_stop;

#pragma GCC visibility push(hidden)

/// Stores a stop's system call and time in `info`. Async-signal-safe: yes.
void cunwind_describe_stop(const cunwind_stop_request *answer, cunwind_capture_info *info);

/// Allocates a helper's memory and a copy, which replace those of a stop that is set aside. False: no place or no
/// memory is left.
bool cunwind_prepare_spare(cunwind_engine *engine);

/// Sets aside the helper that still waits for `tid`, and its copy; the spare ones take their place.
/// Async-signal-safe: yes.
void cunwind_set_aside(cunwind_engine *engine, pid_t tid, bool is_wanted);

/// Returns CUNWIND_OK if no earlier stop of the thread is under way, CUNWIND_PENDING if one is and its result is
/// wanted, CUNWIND_FAILED if one is and only has to release the thread. Async-signal-safe: yes.
cunwind_status cunwind_pending_status(cunwind_engine *engine, pid_t tid);

/// Frees the memory of stops that were set aside, if the helper has ended and the result is not wanted. Waits for each
/// helper for at most `bound` nanoseconds.
void cunwind_tidy_pending(cunwind_engine *engine, uint64_t bound);

/// Ends all stops that were set aside.
void cunwind_pending_destroy(cunwind_engine *engine);

/// Runs the helper once on `tid`, whose stack it copies up to `bounds`. `may_stay`: if the thread does not stop in
/// time, the request stays, and the result is CUNWIND_PENDING instead of CUNWIND_TIMED_OUT.
cunwind_status cunwind_run_helper(cunwind_engine *engine, pid_t tid, cunwind_stack_bounds bounds, bool may_stay);

#pragma GCC visibility pop

#endif
