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

#define OWN_STAT "/proc/thread-self/stat"

/// The first version of `struct sched_attr` (sched_setattr(2)). glibc declares it from 2.41 on.
typedef struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} scheduling;

// Reads the fields `nice`, `rt_priority` and `policy` of a thread's stat file (proc_pid_stat(5), 19, 40 and 41). Reads a
// file, because a filter may kill the caller of the system calls that return them.
static bool read_scheduling(const char *path, scheduling *own) {
  char text[512];
  if (cunwind_read_text(path, text, sizeof text) <= 0) return false;
  const char *nice = cunwind_behind_field(text, 18), *priority = cunwind_behind_field(text, 39);
  const char *policy = cunwind_behind_field(text, 40);
  if (!nice || !priority || !policy) return false;
  own->nice = (int32_t)strtol(nice, NULL, 10);
  own->priority = (uint32_t)strtoul(priority, NULL, 10);
  own->policy = (uint32_t)strtoul(policy, NULL, 10);
  return true;
}

/// What the calling thread has asked for.
static _Thread_local bool has_short_slice, is_punctual;

// 0 stands for the kernel's own.
static bool set_slice(uint64_t nanoseconds) {
  scheduling own = {.size = sizeof own, .runtime = nanoseconds};
  if (!read_scheduling(OWN_STAT, &own) || (own.policy != SCHED_OTHER && own.policy != SCHED_BATCH)) return false;
  if (cunwind_call_is_deadly(CUNWIND_CALL_SET_SCHEDULING)) return false;
  return cunwind_raw(SYS_sched_setattr, 0, (long)&own, 0, 0, 0, 0) == 0;
}

bool cunwind_request_short_slice(void) {
  // By default a timed wait may end 50 us late (prctl(2), PR_SET_TIMERSLACK).
  is_punctual = prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0) == 0;
  return has_short_slice = set_slice(SLICE_NANOSECONDS);
}

void cunwind_suspend_short_slice(bool is_suspended) {
  // A slack of 0 stands for the one that the thread began with.
  if (is_punctual) prctl(PR_SET_TIMERSLACK, is_suspended ? 0ul : 1ul, 0, 0, 0);
  if (has_short_slice) set_slice(is_suspended ? 0 : SLICE_NANOSECONDS);
}

// ---- What the helper needs -------------------------------------------------------------------------------------------
// The fair threads get a CPU beside real-time ones for 50 ms in each second (kernel/sched/deadline.c, the server of fair
// threads; before Linux 6.12 the throttling of real-time ones). A helper that is a fair one could stop a real-time thread
// and lose its CPU to one that has a lower priority than that: the thread was held for 0.9 s (measured).

#define HIGHEST_PRIORITY 99
/// The difference of nice values with which a helper gets a ninth of the thread's share of a busy CPU, or less
/// (kernel/sched/core.c, sched_prio_to_weight): the thread was held for 0.1 s by one that had nice 19 (measured).
#define WEAK_BY 10

int cunwind_priority_over(pid_t tid) {
  char path[CUNWIND_NUMBERED_PATH_BYTES];
  cunwind_number_path(path, "/proc/self/task/", (uint64_t)tid, "/stat");
  scheduling own, other;
  if (!read_scheduling(path, &other)) return 0;
  // No priority is above a deadline.
  if (other.policy == SCHED_DEADLINE) return HIGHEST_PRIORITY;
  // Threads of the same priority take turns, or wait for each other.
  if (other.policy == SCHED_FIFO || other.policy == SCHED_RR)
    return other.priority < HIGHEST_PRIORITY ? (int)other.priority + 1 : HIGHEST_PRIORITY;
  if (!read_scheduling(OWN_STAT, &own)) return 0;
  bool is_weak = own.nice - other.nice >= WEAK_BY || (own.policy == SCHED_IDLE && other.policy != SCHED_IDLE);
  return is_weak ? CUNWIND_TOO_WEAK : 0;
}

CUNWIND_BARE static bool take(int priority) {
  scheduling own;
  own.size = sizeof own;
  own.policy = SCHED_FIFO;
  own.flags = 0;
  own.nice = 0;
  own.priority = (uint32_t)priority;
  own.runtime = own.deadline = own.period = 0;
  return cunwind_raw(SYS_sched_setattr, 0, (long)&own, 0, 0, 0, 0) == 0;
}

CUNWIND_BARE bool cunwind_take_priority(int priority) { return take(priority) || (priority > 1 && take(priority - 1)); }
