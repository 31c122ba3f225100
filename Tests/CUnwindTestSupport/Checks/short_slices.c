// A thread that requests short slices, and its scheduling attributes afterwards.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "Support/checks.h"
#include "Support/seccomp_filter.h"

/// A thread's scheduling attributes (sched_getattr(2)).
typedef struct scheduling {
  uint32_t policy;
  int32_t nice;
  uint64_t slice_nanoseconds;
} scheduling;

typedef struct run {
  scheduling before, made, after;
  int slack_before, slack_made, slack_after;
  bool is_told, was_taken;
} run;

enum { NICE = 7 };

static bool tell(scheduling *told) {
  // The first version of `struct sched_attr` (sched_setattr(2)).
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } own;
  memset(&own, 0, sizeof own);
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) < 0) return false;
  *told = (scheduling){own.policy, own.nice, own.runtime};
  return true;
}

static void *inherit(void *context) {
  run *run = context;
  run->is_told = tell(&run->made) && run->is_told;
  run->slack_made = prctl(PR_GET_TIMERSLACK);
  return NULL;
}

static void *ask(void *context) {
  run *run = context;
  struct sched_param none = {0};
  if (sched_setscheduler(0, SCHED_BATCH, &none) < 0 || setpriority(PRIO_PROCESS, 0, NICE) < 0) return NULL;
  run->is_told = tell(&run->before);
  run->slack_before = prctl(PR_GET_TIMERSLACK);
  run->was_taken = cunwind_request_short_slice();
  cunwind_suspend_short_slice(true);
  pthread_t made;
  if (pthread_create(&made, NULL, inherit, run) == 0) pthread_join(made, NULL);
  cunwind_suspend_short_slice(false);
  run->is_told = tell(&run->after) && run->is_told;
  run->slack_after = prctl(PR_GET_TIMERSLACK);
  return NULL;
}

void cunwind_check_short_slice(int unused) {
  (void)unused;
  struct utsname system;
  char *minor = NULL;
  uname(&system);
  long major = strtol(system.release, &minor, 10);
  if (major < 6 || (major == 6 && strtol(minor + 1, NULL, 10) < 12)) {
    cunwind_test_say("not run: it needs Linux 6.12");
    return;
  }
  run run = {.is_told = false};
  pthread_t thread;
  if (!EXPECT(pthread_create(&thread, NULL, ask, &run) == 0)) return;
  pthread_join(thread, NULL);
  EXPECT(run.is_told && run.was_taken);
  EXPECT(run.before.slice_nanoseconds > run.after.slice_nanoseconds && run.after.slice_nanoseconds == 500000);
  EXPECT(run.after.nice == NICE && run.after.policy == run.before.policy);
  EXPECT(run.made.slice_nanoseconds == run.before.slice_nanoseconds && run.made.nice == NICE);
  EXPECT(run.slack_made == run.slack_before && run.slack_before > 1 && run.slack_after == 1);
}

static void ask_under_filter(int error) {
  EXPECT(cunwind_test_refuse(SYS_sched_setattr, cunwind_test_refusal_by(error)) == 0);
  EXPECT(!cunwind_request_short_slice());
}

// A service manager's filter for "@resources" covers this call, and its default action kills the process.
void cunwind_check_refused_short_slice(int error) { cunwind_test_expect_in_child(ask_under_filter, error); }
