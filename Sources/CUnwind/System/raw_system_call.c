#define _GNU_SOURCE
#include "System/raw_system_call.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

long cunwind_clone_blocked(unsigned long flags, void *top, uint32_t *tid, int (*function)(void *), void *argument) {
  uint64_t all = ~0ull, before = 0;
  cunwind_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, CUNWIND_SIGSET_BYTES, 0, 0);
  long pid = cunwind_raw_clone(flags, top, tid, function, argument);
  cunwind_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, CUNWIND_SIGSET_BYTES, 0, 0);
  return pid;
}

void cunwind_pause(uint64_t nanoseconds) {
  struct timespec pause = cunwind_timespec(nanoseconds);
  cunwind_raw(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

// The kernel clears `alive` before the process has completely ended, so it may take a moment until it can be reaped.
bool cunwind_reap(pid_t pid, uint64_t bound) {
  uint64_t deadline = cunwind_now() + bound;
  for (unsigned tries = 0;; tries++) {
    long got = cunwind_raw(SYS_wait4, pid, 0, __WALL | WNOHANG, 0, 0, 0);
    // ECHILD: the app waited for every kind of child (__WALL) and reaped the helper first.
    if (got == pid || got == -ECHILD) return true;
    if (cunwind_now() >= deadline) return false;
    if (tries < 20) cunwind_raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    else cunwind_pause(50000);
  }
}
