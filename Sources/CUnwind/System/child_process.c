// The end of a child process, and a child that finds out whether a seccomp filter kills the caller of a system call.
//
// Most filters return EPERM, which is easy to handle. But service managers kill the caller by default
// (SECCOMP_RET_KILL_PROCESS and the like; systemd.exec(5), SystemCallFilter=), like a signal with a core dump. Up to
// Linux 5.15 a core dump also ends every process that shares the memory (zap_threads): the helper's death would be the
// app's. So under a filter a child with memory of its own makes the call first.

#define _GNU_SOURCE
#include "System/child_process.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "CUnwind.h"
#include "System/raw_system_call.h"

/// The time that the child has to be scheduled, make one system call and end (1 s).
#define CHILD_NANOSECONDS 1000000000ull
#define KERNEL_SIGSET_BYTES 8

void cunwind_pause(uint64_t nanoseconds) {
  struct timespec pause = {(time_t)(nanoseconds / 1000000000ull), (long)(nanoseconds % 1000000000ull)};
  cunwind_raw(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
}

// The kernel clears `alive` before the process has completely ended, so it may take a moment until it can be reaped.
bool cunwind_reap(pid_t pid, uint64_t bound, int *status) {
  uint64_t deadline = cunwind_now() + bound;
  *status = 0;
  for (unsigned tries = 0;; tries++) {
    long got = cunwind_raw(SYS_wait4, pid, (long)status, __WALL | WNOHANG, 0, 0, 0);
    // ECHILD: the app waited for every kind of child (__WALL) and reaped the helper first.
    if (got == pid || got == -ECHILD) return true;
    if (cunwind_now() >= deadline) return false;
    if (tries < 20) cunwind_raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    else cunwind_pause(50000);
  }
}

// Makes the child not dumpable, so that it leaves no core dump. The child has a copy of everything, including the
// caller's stack, so a plain call is safe here.
CUNWIND_BARE static void make_calls_and_end(const long *numbers, size_t count, long first) {
  cunwind_raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
  for (size_t index = 0; index < count; index++) cunwind_raw(numbers[index], first, 0, 0, 0, 0, 0);
  for (;;) cunwind_raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

// `if_untried` is the answer where no child can be created.
static bool calls_are_deadly(const long *numbers, size_t count, long first, bool if_untried) {
  if (cunwind_raw(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != SECCOMP_MODE_FILTER) return false;
  // As in the helper: if the signal of SECCOMP_RET_TRAP is blocked, it is fatal, too, and the app's handlers do not
  // run.
  uint64_t all = ~0ull, before = 0;
  cunwind_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, KERNEL_SIGSET_BYTES, 0, 0);
  // No flags: exit signal 0, so that the app gets no SIGCHLD. On both architectures a NULL stack means the caller's.
  long pid = cunwind_raw(SYS_clone, 0, 0, 0, 0, 0, 0);
  if (pid == 0) make_calls_and_end(numbers, count, first);
  cunwind_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, KERNEL_SIGSET_BYTES, 0, 0);
  if (pid < 0) return if_untried;
  int status;
  if (!cunwind_reap((pid_t)pid, CHILD_NANOSECONDS, &status)) {
    cunwind_raw(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
    cunwind_reap((pid_t)pid, CHILD_NANOSECONDS, &status);
    return true;
  }
  return WIFSIGNALED(status);
}

bool cunwind_may_send_signals(void) { return !cunwind_call_is_deadly(SYS_rt_tgsigqueueinfo, 0); }

bool cunwind_may_poll_events(void) {
  // With these arguments each of them is an error.
  static const long calls[] = {SYS_io_setup, SYS_io_submit, SYS_io_getevents, SYS_io_cancel, SYS_io_destroy};
  return !calls_are_deadly(calls, sizeof calls / sizeof *calls, 0, true);
}

bool cunwind_call_is_deadly(long number, long first) {
  // A process that cannot create a child cannot create a helper either.
  return calls_are_deadly(&number, 1, first, false);
}
