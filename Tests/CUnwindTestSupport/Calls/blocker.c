// A thread that repeats one blocking call and counts the results.

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "Calls/blocking_calls.h"
#include "Support/bounded.h"

struct cunwind_test_blocker {
  const cunwind_test_entry *entry;
  cunwind_test_fixture fixture;
  cunwind_test_blocker_result result;
  pthread_t thread, feeder;
  pid_t tid;
};

static const cunwind_test_entry *entry_at(size_t index) {
  return index < cunwind_test_timed_call_count ? &cunwind_test_timed_calls[index]
                                               : &cunwind_test_fed_calls[index - cunwind_test_timed_call_count];
}

size_t cunwind_test_call_count(void) { return cunwind_test_timed_call_count + cunwind_test_fed_call_count; }

cunwind_test_call cunwind_test_call_at(size_t index) { return entry_at(index)->call; }

// The function that contains an address is the last listed one that begins before it. A function that is not listed
// could be confused with the listed one before it, so addresses more than a page after the beginning do not count.
bool cunwind_test_call_contains(size_t index, uint64_t address) {
  uint64_t start = (uint64_t)(uintptr_t)entry_at(index)->block;
  if (address <= start || address - start > 4096) return false;
  for (size_t other = 0; other < cunwind_test_call_count(); other++) {
    uint64_t other_start = (uint64_t)(uintptr_t)entry_at(other)->block;
    if (other_start > start && other_start < address) return false;
  }
  return true;
}

int cunwind_test_call_once(size_t index, uint32_t milliseconds) {
  cunwind_test_fixture fixture;
  int error = cunwind_test_fixture_init(&fixture, milliseconds) ? entry_at(index)->block(&fixture) : errno;
  cunwind_test_fixture_destroy(&fixture);
  return error;
}

static bool is_stopping(const cunwind_test_blocker *blocker) {
  return __atomic_load_n(&blocker->fixture.is_stopping, __ATOMIC_ACQUIRE);
}

static uint64_t microseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void *block_again_and_again(void *context) {
  cunwind_test_blocker *blocker = context;
  cunwind_test_fixture *fixture = &blocker->fixture;
  cunwind_test_blocker_result *result = &blocker->result;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);  // The signal for which sigtimedwait waits.
  // Set the signal mask: on a thread of libdispatch the inherited one blocks nearly every signal.
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  __atomic_store_n(&blocker->tid, gettid(), __ATOMIC_RELEASE);
  while (!is_stopping(blocker)) {
    uint64_t begin = microseconds_now();
    errno = 0;
    int error = blocker->entry->block(fixture);
    uint64_t took = microseconds_now() - begin;
    result->iterations++;
    if (error == EINTR) result->interrupted++;
    else if (error != 0) result->failed++, result->error = error;
    // Some kernels round a time-out down to their tick or to a millisecond.
    else if (blocker->entry->call.is_timed && took + 1500 < fixture->milliseconds * 1000ull) result->early++;
  }
  return NULL;
}

static void *feed_again_and_again(void *context) {
  cunwind_test_blocker *blocker = context;
  bool was_stopping;
  // Feed once more after the stop, because the thread may be in its last call.
  do {
    was_stopping = is_stopping(blocker);
    blocker->entry->feed(&blocker->fixture);
  } while (!was_stopping);
  return NULL;
}

cunwind_test_blocker *cunwind_test_blocker_start(size_t index, uint32_t milliseconds) {
  cunwind_test_blocker *blocker = calloc(1, sizeof *blocker);
  if (!blocker) return NULL;
  blocker->entry = entry_at(index);
  int failed = cunwind_test_fixture_init(&blocker->fixture, milliseconds) ? 0 : errno;
  if (!failed && blocker->entry->feed) failed = pthread_create(&blocker->feeder, NULL, feed_again_and_again, blocker);
  if (!failed) failed = pthread_create(&blocker->thread, NULL, block_again_and_again, blocker);
  if (failed) {
    __atomic_store_n(&blocker->fixture.is_stopping, 1, __ATOMIC_RELEASE);
    if (blocker->feeder) pthread_join(blocker->feeder, NULL);
    cunwind_test_fixture_destroy(&blocker->fixture);
    free(blocker);
    errno = failed;
    return NULL;
  }
  while (__atomic_load_n(&blocker->tid, __ATOMIC_ACQUIRE) == 0) usleep(100);
  return blocker;
}

pid_t cunwind_test_blocker_tid(const cunwind_test_blocker *blocker) { return blocker->tid; }

cunwind_test_blocker_result cunwind_test_blocker_stop(cunwind_test_blocker *blocker) {
  __atomic_store_n(&blocker->fixture.is_stopping, 1, __ATOMIC_RELEASE);
  if (!cunwind_test_join(blocker->thread) || (blocker->feeder && !cunwind_test_join(blocker->feeder))) {
    return (cunwind_test_blocker_result){.failed = 1, .error = ETIMEDOUT};
  }
  cunwind_test_blocker_result result = blocker->result;
  cunwind_test_fixture_destroy(&blocker->fixture);
  free(blocker);
  return result;
}
