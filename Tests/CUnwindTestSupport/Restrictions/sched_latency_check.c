// A thread that requests short slices, and its scheduling attributes afterwards.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

typedef struct run {
  int nice;
  cunwind_test_scheduling *before, *after;
  bool is_told, was_taken;
} run;

static bool tell(cunwind_test_scheduling *told) {
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
  *told = (cunwind_test_scheduling){own.policy, own.nice, own.runtime};
  return true;
}

static void *ask(void *context) {
  run *run = context;
  struct sched_param none = {0};
  if (sched_setscheduler(0, SCHED_BATCH, &none) < 0 || setpriority(PRIO_PROCESS, 0, run->nice) < 0) return NULL;
  run->is_told = tell(run->before);
  run->was_taken = cunwind_request_short_slice();
  run->is_told = tell(run->after) && run->is_told;
  return NULL;
}

bool cunwind_test_short_slice(int nice, cunwind_test_scheduling *before, cunwind_test_scheduling *after) {
  run run = {.nice = nice, .before = before, .after = after};
  pthread_t thread;
  if (pthread_create(&thread, NULL, ask, &run) != 0) return false;
  pthread_join(thread, NULL);
  return run.is_told && run.was_taken;
}
