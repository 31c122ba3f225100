// Bounded waits, and their clock: a test whose thread or child is left stopped fails instead of hanging.

#ifndef CUNWIND_BOUNDED_H
#define CUNWIND_BOUNDED_H

#include <CUnwind.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// CLOCK_MONOTONIC.
uint64_t cunwind_test_milliseconds_now(void);

/// Waits for a thread's end, 30 s at most. False: it still runs, and its memory must stay valid.
bool cunwind_test_join(pthread_t thread);

/// Waits for a child's end, 30 s at most, and stores its status (waitpid(2)). Returns 0, ETIMEDOUT if the child had to
/// be killed, or the error number of waitpid(2).
int cunwind_test_await_child(pid_t child, int *status);

/// Returns whether a capture by stop failed only because the helper of an earlier one, which has timed out, must end
/// first. If so, it gives that helper a millisecond.
bool cunwind_test_awaits_helper(cunwind_status status, const cunwind_capture_info *info);

#endif
