// How a case is written. SPIN uses the processor in the case's own function, so that no helper is on the stack, and adds up
// the gaps between two clock reads that are longer than 50 us: the thread did not run there, or was stopped.

#ifndef STALLBENCH_CASES_H
#define STALLBENCH_CASES_H

#include <errno.h>

#include "bench.h"

#define CASE(name)                  \
  static const int name##_line = __LINE__; \
  __attribute__((noinline)) void name(unsigned milliseconds); \
  void name(unsigned milliseconds)

#define ROW(case_name, function, cause, ...) \
  { case_name, #function, __FILE_NAME__, function##_line, function, cause, __VA_ARGS__ }

#define SPIN(milliseconds, work)                                                                     \
  for (double spin_began = bench_now(), spin_last = spin_began; spin_last < spin_began + (milliseconds) / 1e3;) { \
    work;                                                                                            \
    double spin_now = bench_now();                                                                   \
    if (spin_now - spin_last > 5e-5) bench_gaps += spin_now - spin_last;                              \
    spin_last = spin_now;                                                                            \
  }

/// Counts a call that a signal or a stop has cut short.
#define NOTE(result) \
  if ((result) < 0 && errno == EINTR) bench_early_returns++

/// Starts a thread that holds something for the case. Returns when `hold` has it.
struct bench_holder {
  void (*hold)(void *lock);
  void (*release)(void *lock);
  void *lock;
  unsigned milliseconds;
  const char *name;
  bool spins;
  /// Internal.
  int ready[2];
};

extern const struct bench_case bench_healthy[];
extern const unsigned bench_healthy_count;
/// The thread goes on holding for `milliseconds`, and then releases. The truth gets its name, unless the lock has no owner.
void bench_hold(struct bench_holder holder, bool has_owner);
/// Writes a byte to the descriptor later, from another thread.
void bench_write_later(int descriptor, unsigned milliseconds);

#endif
