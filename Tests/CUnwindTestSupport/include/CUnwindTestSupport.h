// Threads in every state that the capture engine has to get right, and drivers that try to break it. For tests only.

#ifndef CUNWIND_TEST_SUPPORT_H
#define CUNWIND_TEST_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- Threads that block ---------------------------------------------------------------------------------------------

/// A system call (or a wrapper of one) in which a thread can block.
typedef struct cunwind_test_call {
  const char *_Nonnull name;
  bool is_timed;         ///< It returns by itself after the time given, and never earlier.
  bool never_restarted;  ///< signal(7): returns EINTR after a stop or a handler, whatever SA_RESTART says.
} cunwind_test_call;

size_t cunwind_test_call_count(void);
/// Entry `index` of the list; index < cunwind_test_call_count().
cunwind_test_call cunwind_test_call_at(size_t index);
/// Whether `address` is in the function of this test that makes call `index` (cunwind_test_block_in_...).
bool cunwind_test_call_contains(size_t index, uint64_t address);

typedef struct cunwind_test_blocker cunwind_test_blocker;

/// What the thread saw.
typedef struct cunwind_test_blocker_result {
  uint32_t iterations;
  uint32_t interrupted;  ///< The call ended with EINTR.
  uint32_t early;        ///< It returned before its time, as if it had been over.
  uint32_t failed;       ///< Any other surprise; `error` is the last one's errno.
  int error;
} cunwind_test_blocker_result;

/// A thread that makes call `index` again and again; each blocks for about `milliseconds`, 10...1000
/// (sleep(3): one second). NULL: could not be made, errno says why.
cunwind_test_blocker *_Nullable cunwind_test_blocker_start(size_t index, uint32_t milliseconds);
pid_t cunwind_test_blocker_tid(const cunwind_test_blocker *_Nonnull blocker);
/// Ends it after the call it is in, and frees it.
cunwind_test_blocker_result cunwind_test_blocker_stop(cunwind_test_blocker *_Nonnull blocker);

#ifdef __cplusplus
}
#endif

#endif  // CUNWIND_TEST_SUPPORT_H
