// A thread that changes two words whenever it runs. A valid read finds them equal.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Engine/engine.h"
#include "Support/bounded.h"

enum { SHORT_COPY = 16 * 1024, LONG_COPY = 512 * 1024 };

typedef struct changing {
  uint64_t first;
  /// Copying the bytes between the words takes some time, like copying a stack. Copying all of them takes about as long as the
  /// other thread sleeps, so that many reads are torn; a read of a few is often valid.
  uint8_t between[LONG_COPY];
  uint64_t second;
  pid_t tid;
  bool is_over;
} changing;

static void *change(void *context) {
  changing *words = context;
  struct timespec moment = {0, 1000};
  __atomic_store_n(&words->tid, gettid(), __ATOMIC_RELEASE);
  for (uint64_t turn = 1; !__atomic_load_n(&words->is_over, __ATOMIC_RELAXED); turn++) {
    __atomic_store_n(&words->first, turn, __ATOMIC_RELEASE);
    for (volatile uint64_t spin = 0; spin < turn % 400; spin++) continue;
    __atomic_store_n(&words->second, turn, __ATOMIC_RELEASE);
    nanosleep(&moment, NULL);
  }
  return NULL;
}

static bool are_equal(const changing *words, size_t copied) {
  static uint8_t copy[LONG_COPY];
  uint64_t first = __atomic_load_n(&words->first, __ATOMIC_ACQUIRE);
  memcpy(copy, words->between, copied);
  return first == __atomic_load_n(&words->second, __ATOMIC_ACQUIRE);
}

cunwind_test_proof_result cunwind_test_read_proof(bool counts_slices, uint32_t milliseconds) {
  static changing words;
  cunwind_test_proof_result result = {0};
  pthread_t changer;
  memset(&words, 0, sizeof words);
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!engine || pthread_create(&changer, NULL, change, &words) != 0) return result;
  while (__atomic_load_n(&words.tid, __ATOMIC_ACQUIRE) == 0) usleep(1000);
  cunwind_thread *thread = cunwind_thread_open(words.tid, CUNWIND_ALL_THREAD_FILES, NULL);
  if (thread && !counts_slices && thread->files[CUNWIND_FILE_SCHEDSTAT] >= 0) {
    close(thread->files[CUNWIND_FILE_SCHEDSTAT]);
    thread->files[CUNWIND_FILE_SCHEDSTAT] = -1;
  }
  uint64_t end = cunwind_test_milliseconds_now() + milliseconds;
  for (uint64_t read = 0; thread && cunwind_test_milliseconds_now() < end; read++) {
    if (cunwind_thread_before_read(thread) != CUNWIND_OK) continue;
    bool is_torn = !are_equal(&words, read % 2 ? LONG_COPY : SHORT_COPY);
    bool is_valid = cunwind_thread_after_read(thread) == CUNWIND_OK;
    result.counted_slices = thread->seen.slices != 0;
    *(is_valid ? &result.valid : &result.refused) += 1;
    *(is_valid ? &result.torn_valid : &result.torn_refused) += is_torn;
  }
  __atomic_store_n(&words.is_over, true, __ATOMIC_RELAXED);
  cunwind_test_join(changer);
  cunwind_thread_close(thread);
  cunwind_engine_destroy(engine);
  return result;
}
