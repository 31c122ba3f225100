// What a thread of the monitor must not have of the one that starts it: policy, processors, timer slack and stack.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

void cunwind_test_take_odd_settings(void) {
  struct sched_param none = {0};
  // As a stand-in for a real-time policy, which needs a privilege.
  sched_setscheduler(0, SCHED_BATCH, &none);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  prctl(PR_SET_TIMERSLACK, 1000000);
}

cunwind_test_thread_settings cunwind_test_own_settings(void) {
  cunwind_test_thread_settings settings = {.has_usual_policy = sched_getscheduler(0) == SCHED_OTHER,
                                           .timer_slack = prctl(PR_GET_TIMERSLACK)};
  cpu_set_t own, of_process;
  settings.has_all_processors = sched_getaffinity(0, sizeof own, &own) == 0 &&
                                sched_getaffinity(getpid(), sizeof of_process, &of_process) == 0 &&
                                CPU_EQUAL(&own, &of_process);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &settings.stack_bytes);
    pthread_attr_destroy(&attributes);
  }
  return settings;
}
