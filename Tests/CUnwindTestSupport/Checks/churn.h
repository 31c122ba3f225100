// Threads that keep taking the process' locks.

#ifndef CUNWIND_CHURN_H
#define CUNWIND_CHURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUNWIND_TEST_CHURNERS 8

typedef struct cunwind_test_churner {
  pthread_t thread;
  int kind;
  bool loads_libraries;
  pid_t tid;
  uint32_t is_stopping;
  bool is_stuck;
  uint64_t rounds;
  uint64_t lost_children;
  uint64_t lost_exceptions;
} cunwind_test_churner;

/// Throws a C++ exception through a few frames and catches it. False: the caught exception is not the thrown one.
bool cunwind_test_throw_and_catch(void);

/// Starts one thread of each kind. Returns 0 or an errno.
int cunwind_test_churn_start(cunwind_test_churner churners[CUNWIND_TEST_CHURNERS]);
/// Ends and joins the threads. A thread that does not end is stuck.
void cunwind_test_churn_stop(cunwind_test_churner churners[CUNWIND_TEST_CHURNERS]);

#ifdef __cplusplus
}
#endif

#endif
