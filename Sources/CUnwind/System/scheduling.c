// Makes the watchdog run as soon as it wakes, and the helper as soon as it is created.
//
// On a busy processor, a thread that wakes waits until the running thread's slice is over: up to 4 ms each time with
// 250 ticks per second (measured: 0.01 to 8 ms, behind the stalled thread itself, or behind the reporter). From Linux
// 6.12 on, a thread can request shorter slices (sched_runtime of SCHED_OTHER and SCHED_BATCH; kernel/sched/syscalls.c,
// __setparam_fair), and a thread that wakes with a shorter slice runs at once (kernel/sched/features.h, PREEMPT_SHORT).
// Its share of the processor stays the same, so it needs no privilege. A child of clone(2) inherits the slice.

#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "CUnwind.h"
#include "System/raw_system_call.h"

/// The requested slice. It is shorter than the default (0.7 ms on one processor to 2.8 ms on eight and more:
/// kernel/sched/fair.c, sysctl_sched_base_slice), and longer than a capture, which takes 0.3 ms. If a tick finds the
/// slice over, the preempted thread runs until the next tick. With 0.1 ms, the kernel's minimum, 6 of 220 captures
/// waited 2 to 4 ms for the reporter in their middle; with this value, 5 of 660 did (traced).
#define SLICE_NANOSECONDS 500000u

/// The first version of `struct sched_attr` (sched_setattr(2)). glibc declares it from 2.41 on.
typedef struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} scheduling;

// Reads the fields `nice` and `policy` of the calling thread's stat file (proc_pid_stat(5), 19 and 41). Reads a file,
// because a filter may kill the caller of the system calls that return them.
static bool read_own_scheduling(scheduling *own) {
  char text[512];
  if (cunwind_read_text("/proc/thread-self/stat", text, sizeof text) <= 0) return false;
  const char *nice = cunwind_behind_field(text, 18), *policy = cunwind_behind_field(text, 40);
  if (!nice || !policy) return false;
  own->nice = (int32_t)strtol(nice, NULL, 10);
  own->policy = (uint32_t)strtoul(policy, NULL, 10);
  return true;
}

bool cunwind_request_short_slice(void) {
  // By default a timed wait may end 50 us late (prctl(2), PR_SET_TIMERSLACK).
  prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
  scheduling own = {.size = sizeof own, .runtime = SLICE_NANOSECONDS};
  if (!read_own_scheduling(&own) || (own.policy != SCHED_OTHER && own.policy != SCHED_BATCH)) return false;
  if (cunwind_call_is_deadly(CUNWIND_CALL_SET_SCHEDULING)) return false;
  return cunwind_raw(SYS_sched_setattr, 0, (long)&own, 0, 0, 0, 0) == 0;
}
