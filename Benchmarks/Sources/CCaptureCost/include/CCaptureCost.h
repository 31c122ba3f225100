// What a capture costs the thread that is captured and the one that captures it, by every way there is.

#ifndef CCAPTURECOST_H
#define CCAPTURECOST_H

#include <stddef.h>
#include <stdint.h>

/// A way to take the stack of another thread.
typedef enum capture_way {
  CAPTURE_NOTHING,              ///< Sleeps for 100 us: what the machine itself keeps the thread from.
  CAPTURE_READ,                 ///< StallWatch's read of a blocked thread.
  CAPTURE_STOP,                 ///< StallWatch's stop.
  CAPTURE_SIGNAL,               ///< StallWatch's signal, with ptrace unused.
  CAPTURE_PLAIN_SIGNAL_COPY,    ///< A signal handler that copies the stack with memcpy(3).
  CAPTURE_BACKTRACE_IN_HANDLER  ///< A signal handler that calls the unwinder: Seastar's and others' design.
} capture_way;

/// Captures a thread `count` times whose stack is `stack_bytes` deep, 4096...1048576.
///
/// `held`: the longest time that the thread itself saw its clock stand still, for each capture; zeros for a read, whose
/// thread is blocked. `whole`: how long the caller took. Both in nanoseconds, `count` elements each.
/// Returns the mean of the frames found, or -1 when the machine does not let it.
double capture_cost(capture_way way, size_t stack_bytes, size_t count, uint64_t *_Nonnull held,
                    uint64_t *_Nonnull whole);

#endif  // CCAPTURECOST_H
