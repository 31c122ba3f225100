// The calls in which a thread can block, and the objects for which they wait.

#ifndef CUNWIND_BLOCKING_CALLS_H
#define CUNWIND_BLOCKING_CALLS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <time.h>

#include "CUnwindTestSupport.h"

/// The objects that a call may need. Each blocker has its own.
typedef struct cunwind_test_fixture {
  uint32_t milliseconds;
  uint32_t is_stopping;
  uint32_t is_held;  ///< The feeder holds the lock for which the call waits.
  int pipe[2];
  int full_pipe[2];
  int pair[2];
  int listener, full_listener;
  char full_path[64];
  int epoll;
  int file, other_file;
  int message_queue, semaphores;
  unsigned long aio;
  uint32_t word;
  sem_t semaphore;
  pthread_mutex_t mutex, condition_mutex;
  pthread_cond_t condition;
  pthread_rwlock_t rwlock;
} cunwind_test_fixture;

/// Makes the call. Returns 0 if it ended as it should, else an errno.
typedef int (*cunwind_test_block)(cunwind_test_fixture *fixture);
/// Waits for about the fixture's time, then ends the wait of the blocked call.
typedef void (*cunwind_test_feed)(cunwind_test_fixture *fixture);

typedef struct cunwind_test_entry {
  cunwind_test_call call;
  cunwind_test_block block;
  cunwind_test_feed feed;  ///< NULL for a timed call.
} cunwind_test_entry;

extern const cunwind_test_entry cunwind_test_timed_calls[];
extern const size_t cunwind_test_timed_call_count;
extern const cunwind_test_entry cunwind_test_fed_calls[];
extern const size_t cunwind_test_fed_call_count;

/// False with errno.
bool cunwind_test_fixture_init(cunwind_test_fixture *fixture, uint32_t milliseconds);
void cunwind_test_fixture_destroy(cunwind_test_fixture *fixture);

static inline struct timespec cunwind_test_span(const cunwind_test_fixture *fixture) {
  return (struct timespec){fixture->milliseconds / 1000, (long)(fixture->milliseconds % 1000) * 1000000};
}

static inline struct timespec cunwind_test_deadline(const cunwind_test_fixture *fixture, clockid_t clock) {
  struct timespec now, span = cunwind_test_span(fixture);
  clock_gettime(clock, &now);
  now.tv_sec += span.tv_sec;
  now.tv_nsec += span.tv_nsec;
  if (now.tv_nsec >= 1000000000) {
    now.tv_sec++;
    now.tv_nsec -= 1000000000;
  }
  return now;
}

#endif
