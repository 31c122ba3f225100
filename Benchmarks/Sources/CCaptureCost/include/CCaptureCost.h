// The cost of a capture for the captured thread and for the capturing thread, in every way.

#ifndef CCAPTURECOST_H
#define CCAPTURECOST_H

#include <stddef.h>
#include <stdint.h>

/// A way to take the stack of another thread.
typedef enum capture_way {
  CAPTURE_NOTHING,              ///< No capture, but a sleep of 100 us: shows the gaps that the machine itself causes.
  CAPTURE_READ,                 ///< StallWatch's read of a blocked thread.
  CAPTURE_STOP,                 ///< StallWatch's stop.
  CAPTURE_SIGNAL,               ///< StallWatch's signal, with ptrace unused.
  CAPTURE_PLAIN_SIGNAL_COPY,    ///< A signal handler that copies the stack with memcpy(3).
  CAPTURE_BACKTRACE_IN_HANDLER  ///< A signal handler that calls the unwinder: Seastar's and others' design.
} capture_way;

/// Captures `count` times a thread whose stack is `stack_bytes` deep, 4096...1048576.
///
/// `held` gets the longest gap between two clock reads of the thread, for each capture; zeros for a read, whose thread is
/// blocked. `whole` gets the time that the caller took. Both have `count` elements, in nanoseconds.
/// Returns the mean number of frames, or -1 if the machine does not permit the captures.
double capture_cost(capture_way way, size_t stack_bytes, size_t count, uint64_t *_Nonnull held,
                    uint64_t *_Nonnull whole);

/// Returns how long the creation of an engine takes, which loads libunwind, in nanoseconds; 0 if it fails.
uint64_t engine_creation_cost(void);

#endif  // CCAPTURECOST_H
