// A signal that the app uses itself.

#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"

static uint64_t arrived;

static void count(int number) {
  (void)number;
  __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
}

cunwind_test_shared_signal_result cunwind_test_shared_signal(void) {
  static cunwind_stack stack;
  cunwind_test_shared_signal_result result;
  memset(&result, 0, sizeof result);
  const int number = SIGRTMIN + 9;
  struct sigaction app, before, after;
  memset(&app, 0, sizeof app);
  app.sa_handler = count;
  app.sa_flags = SA_RESTART;
  sigaction(number, &app, &before);
  arrived = 0;
  cunwind_engine *engine = cunwind_test_engine(number);
  cunwind_test_thread *thread_state = engine ? cunwind_test_thread_start(CUNWIND_TEST_SPINNING, 3) : NULL;
  if (!thread_state) return result;
  pid_t tid = cunwind_test_thread_tid(thread_state);
  cunwind_thread *thread = cunwind_thread_open(tid, CUNWIND_ALL_THREAD_FILES, NULL);
  for (int round = 0; thread && round < 200; round++) {
    cunwind_capture_info info;
    if (tgkill(getpid(), tid, number) == 0) result.sent++;
    if (cunwind_capture_signal(engine, thread, &stack, &info) == CUNWIND_OK) result.captures++;
  }
  // Real-time signals queue up, so each of them arrives; 10 s at most.
  for (int tries = 0; tries < 1000 && __atomic_load_n(&arrived, __ATOMIC_RELAXED) < result.sent; tries++) usleep(10000);
  result.arrived = __atomic_load_n(&arrived, __ATOMIC_RELAXED);
  cunwind_thread_close(thread);
  cunwind_test_thread_stop(thread_state);
  cunwind_engine_destroy(engine);
  sigaction(number, &before, &after);
  result.is_put_back = after.sa_handler == count && (after.sa_flags & SA_RESTART);
  return result;
}
