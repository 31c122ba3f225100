// Lets the watchdog run as soon as it wakes, and the helper as soon as it is made.
//
// On a processor that something else is on, a thread that wakes waits until that thread's slice is over: up to 4 ms a
// time with 250 ticks a second (measured: 0.01 to 8 ms, behind the stalled thread itself, or behind the reporter).
// Linux 6.12 lets a thread ask for shorter slices than others (sched_runtime of SCHED_OTHER and SCHED_BATCH;
// kernel/sched/syscalls.c, __setparam_fair), and lets one that wakes with a shorter slice run at once
// (kernel/sched/features.h, PREEMPT_SHORT). It gets no more of the processor than others do, which is why it needs no
// privilege. A child of clone(2) inherits it.

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

/// Shorter than what others have (0.7 ms on one processor to 2.8 ms on eight and more: kernel/sched/fair.c,
/// sysctl_sched_base_slice), and longer than a capture, which takes 0.3 ms. When a tick comes after the slice is over,
/// what was preempted has the processor until the next one. Traced with 0.1 ms, the shortest that the kernel gives: 6
/// of 220 captures waited 2 to 4 ms for the reporter in their middle; with this, 5 of 660.
#define SLICE_NANOSECONDS 500000u

/// sched_setattr(2)'s first version of `struct sched_attr`, which the C library has from 2.41 on.
typedef struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} scheduling;

// The fields `nice` and `policy` of the calling thread's stat file (proc_pid_stat(5), 19 and 41). A file, because the
// system calls that return them are among those that filters kill for.
static bool read_own_scheduling(scheduling *own) {
  char text[512];
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/stat", O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return false;
  long got = cunwind_raw(SYS_read, file, (long)text, sizeof text - 1, 0, 0, 0);
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
  if (got <= 0) return false;
  text[got] = 0;
  // The second field ends with the last ')': the name in it may hold one too.
  char *field = strrchr(text, ')');
  for (int number = 2; field && number < 19; number++) field = strchr(field + 1, ' ');
  if (!field) return false;
  own->nice = (int32_t)strtol(field, NULL, 10);
  for (int number = 19; field && number < 41; number++) field = strchr(field + 1, ' ');
  if (!field) return false;
  own->policy = (uint32_t)strtoul(field, NULL, 10);
  return true;
}

bool cunwind_request_short_slice(void) {
  // The default lateness of a timed wait: 50 us (prctl(2), PR_SET_TIMERSLACK).
  prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
  scheduling own = {.size = sizeof own, .runtime = SLICE_NANOSECONDS};
  if (!read_own_scheduling(&own) || (own.policy != SCHED_OTHER && own.policy != SCHED_BATCH)) return false;
  if (cunwind_call_is_deadly(SYS_sched_setattr, 0)) return false;
  return cunwind_raw(SYS_sched_setattr, 0, (long)&own, 0, 0, 0, 0) == 0;
}
