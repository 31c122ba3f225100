// Tries a stop on a thread created for it.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

typedef struct probed_thread {
  uint32_t tid;   // Futex: 0 until the thread runs.
  uint32_t done;  // Futex: 1 lets it end.
} probed_thread;

static void wait_while(uint32_t *word, uint32_t value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
    cunwind_raw(SYS_futex, (long)word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, 0, 0, 0);
  }
}

static void set_and_wake(uint32_t *word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  cunwind_raw(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}

static void *wait_to_be_probed(void *context) {
  probed_thread *thread = context;
  set_and_wake(&thread->tid, (uint32_t)cunwind_raw(SYS_gettid, 0, 0, 0, 0, 0, 0));
  wait_while(&thread->done, 0);
  return NULL;
}

cunwind_status cunwind_engine_probe_stop(cunwind_engine *engine, int *error) {
  probed_thread thread = {0, 0};
  pthread_t handle;
  sigset_t all, before;
  // The thread must not handle signals of the app.
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&handle, NULL, wait_to_be_probed, &thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    if (error) *error = failed;
    return CUNWIND_FAILED;
  }
  wait_while(&thread.tid, 0);
  cunwind_status status = cunwind_run_helper(engine, (pid_t)thread.tid, (cunwind_stack_bounds){.high = 0}, false);
  set_and_wake(&thread.done, 1);
  pthread_join(handle, NULL);
  if (error) *error = status == CUNWIND_OK ? 0 : engine->helper.request->error;
  return status == CUNWIND_OK || status == CUNWIND_REFUSED ? status : CUNWIND_FAILED;
}
