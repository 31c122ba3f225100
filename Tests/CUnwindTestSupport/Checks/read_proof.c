// A thread that changes two words whenever it runs. A valid read finds them equal.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "Engine/engine.h"
#include "Support/bounded.h"
#include "Support/checks.h"

enum { MILLISECONDS = 800, EMULATED_ROUNDS = 15 };
/// The reads of each kind that end a round before its time.
enum { ENOUGH = 500 };
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

/// Reads of such a thread. A torn one finds the words different.
typedef struct result {
  bool counted_slices;
  uint64_t valid, refused;
  uint64_t torn_valid, torn_refused;
} result;

// Proves the reads by time slices if the kernel counts them and `counts_slices` is true, else by switches.
static void read_again_and_again(bool counts_slices, result *result) {
  static changing words;
  pthread_t changer;
  memset(&words, 0, sizeof words);
  cunwind_engine *engine = cunwind_test_engine(27);
  if (!EXPECT(engine && pthread_create(&changer, NULL, change, &words) == 0)) return;
  while (__atomic_load_n(&words.tid, __ATOMIC_ACQUIRE) == 0) usleep(1000);
  cunwind_thread *thread = cunwind_thread_open(words.tid, CUNWIND_ALL_THREAD_FILES, NULL);
  if (thread && !counts_slices && thread->files[CUNWIND_FILE_SCHEDSTAT] >= 0) {
    close(thread->files[CUNWIND_FILE_SCHEDSTAT]);
    thread->files[CUNWIND_FILE_SCHEDSTAT] = -1;
  }
  uint64_t end = cunwind_test_milliseconds_now() + MILLISECONDS;
  for (uint64_t read = 0; thread && cunwind_test_milliseconds_now() < end; read++) {
    if (result->valid >= ENOUGH && result->torn_refused >= ENOUGH) break;
    if (cunwind_thread_before_read(thread) != CUNWIND_OK) continue;
    bool is_torn = !are_equal(&words, read % 2 ? LONG_COPY : SHORT_COPY);
    bool is_valid = cunwind_thread_after_read(thread) == CUNWIND_OK;
    result->counted_slices |= thread->seen.slices != 0;
    *(is_valid ? &result->valid : &result->refused) += 1;
    *(is_valid ? &result->torn_valid : &result->torn_refused) += is_torn;
  }
  __atomic_store_n(&words.is_over, true, __ATOMIC_RELAXED);
  cunwind_test_join(changer);
  cunwind_thread_close(thread);
  cunwind_engine_destroy(engine);
}

void cunwind_check_read_proof(int counts_slices) {
  bool is_emulated = cunwind_test_settings_now().is_emulated;
  result result = {0};
  // Emulated, a wait of a microsecond is often over before the read is.
  for (int round = 0; round < (is_emulated ? EMULATED_ROUNDS : 1) && result.valid == 0; round++)
    read_again_and_again(counts_slices, &result);
  cunwind_test_say("%llu valid, %llu refused, of which %llu torn", COUNT(result.valid), COUNT(result.refused),
                   COUNT(result.torn_refused));
  // A kernel without CONFIG_SCHEDSTATS counts none.
  EXPECT(result.counted_slices == counts_slices);
  EXPECT(result.valid > 0 && result.torn_valid == 0);
  // Without the check these reads would count as valid.
  EXPECT(result.torn_refused > 0 || is_emulated);
}
