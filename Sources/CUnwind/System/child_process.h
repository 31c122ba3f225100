// Child processes that the app knows nothing of.

#ifndef CUNWIND_CHILD_PROCESS_H
#define CUNWIND_CHILD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

/// Reaps a child with any exit signal, within `bound` nanoseconds; `*status` is that of wait(2). True also if the app
/// has reaped it. Async-signal-safe: yes.
bool cunwind_reap(pid_t pid, uint64_t bound, int *status);

/// Sleeps for `nanoseconds` without the C library's cancellation point. Async-signal-safe: yes.
void cunwind_pause(uint64_t nanoseconds);

#pragma GCC visibility pop

#endif
