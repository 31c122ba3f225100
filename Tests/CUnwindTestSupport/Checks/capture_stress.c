// Captures threads that hold the process's locks, and checks for damage: a lock that stays locked, a lost child, a
// leaked descriptor or process.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "Checks/churn.h"
#include "Support/bounded.h"
#include "Support/checks.h"

/// What the captures gave.
typedef struct result {
  uint64_t captures;    ///< By stop, with a stack.
  uint64_t reads;       ///< By read, with a stack.
  uint64_t gone;        ///< The thread had ended.
  uint64_t timed_out;   ///< The helper was not given a CPU in time.
  uint64_t failed;      ///< Anything else; `last_status` and `last_error` say what.
  uint64_t incomplete;  ///< Did not reach the thread's start; not counting the thread that loads libraries.
  int last_status, last_error;
  uint64_t slowest_held_nanoseconds, slowest_capture_nanoseconds;
} result;

static int64_t open_files(void) {
  int64_t count = 0;
  DIR *directory = opendir("/proc/self/fd");
  if (!directory) return -1;
  while (readdir(directory)) count++;
  closedir(directory);
  return count;
}

// Redirects standard output to /dev/null, so that threads can print to it. Returns a duplicate of the original, or -1.
static int silence_output(void) {
  fflush(stdout);
  int output = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  bool is_silent = output >= 0 && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0;
  if (nowhere >= 0) close(nowhere);
  if (is_silent) return output;
  if (output >= 0) close(output);
  return -1;
}

static void restore_output(int output) {
  fflush(stdout);
  dup2(output, STDOUT_FILENO);
  close(output);
}

static void capture(cunwind_engine *engine, const cunwind_test_churner *churner, cunwind_stack *stack,
                    uint64_t deadline, result *result) {
  cunwind_capture_info info;
  cunwind_thread *thread = cunwind_thread_open(churner->tid, CUNWIND_ALL_THREAD_FILES, NULL);
  if (!thread) return;
  for (int count = 0; count < 20 && cunwind_test_milliseconds_now() < deadline; count++) {
    cunwind_engine_refresh_images(engine);
    // The policy's order. A read may fail because the thread runs.
    if (cunwind_capture_read(engine, thread, stack, &info) == CUNWIND_OK) result->reads++;
    cunwind_status status = cunwind_capture_stop(engine, thread, stack, &info);
    if (info.held_nanoseconds > result->slowest_held_nanoseconds) {
      result->slowest_held_nanoseconds = info.held_nanoseconds;
    }
    if (info.capture_nanoseconds > result->slowest_capture_nanoseconds) {
      result->slowest_capture_nanoseconds = info.capture_nanoseconds;
    }
    if (status == CUNWIND_OK) {
      result->captures++;
      // A library loaded since the refresh is not in the list, so the stack may end in it.
      result->incomplete += stack->end != CUNWIND_END_COMPLETE && !churner->loads_libraries;
    } else if (status == CUNWIND_NO_SUCH_THREAD) {
      result->gone++;
    } else if (status == CUNWIND_TIMED_OUT) {
      result->timed_out++;
    } else if (!cunwind_test_awaits_helper(status, &info)) {
      result->failed++;
      result->last_status = status;
      result->last_error = info.error;
    }
  }
  cunwind_thread_close(thread);
}

static bool has_each_run(const cunwind_test_churner churners[CUNWIND_TEST_CHURNERS]) {
  bool have_run = true;
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    have_run &= __atomic_load_n(&churners[kind].rounds, __ATOMIC_ACQUIRE) > 0;
  }
  return have_run;
}

// Captures as fast as possible threads that malloc, dlopen, create threads, fork, vfork, print, throw C++ exceptions,
// change mappings and send themselves signals.
void cunwind_check_locks(int unused) {
  (void)unused;
  static cunwind_test_churner churners[CUNWIND_TEST_CHURNERS];
  static cunwind_stack stack;
  cunwind_test_settings settings = cunwind_test_settings_now();
  result result = {0};
  uint64_t rounds = 0, stuck = 0, lost_children = 0, lost_exceptions = 0;
  // The first engine of a process loads libunwind, which keeps two descriptors.
  cunwind_engine_destroy(cunwind_test_engine(SIGPROF));
  int64_t files = open_files();
  cunwind_engine *engine = cunwind_test_engine(27);
  int output = silence_output();
  if (!EXPECT(engine && output >= 0 && cunwind_test_churn_start(churners) == 0)) return;
  uint64_t deadline = cunwind_test_milliseconds_now() + settings.stress_milliseconds;
  for (unsigned turn = 0; cunwind_test_milliseconds_now() < deadline; turn++) {
    if (result.captures >= settings.stress_captures && has_each_run(churners)) break;
    capture(engine, &churners[turn % CUNWIND_TEST_CHURNERS], &stack, deadline, &result);
  }
  cunwind_test_churn_stop(churners);
  restore_output(output);
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    rounds += churners[kind].rounds;
    stuck += churners[kind].rounds == 0 || churners[kind].is_stuck;
    lost_children += churners[kind].lost_children;
    lost_exceptions += churners[kind].lost_exceptions;
  }
  cunwind_engine_destroy(engine);
  cunwind_test_say(
      "%llu captures, %llu reads, %llu incomplete, %llu late, %llu gone, %llu failed (status %d, errno %d), %llu "
      "rounds, "
      "held for %llu us at most, captured in %llu us at most",
      COUNT(result.captures), COUNT(result.reads), COUNT(result.incomplete), COUNT(result.timed_out),
      COUNT(result.gone), COUNT(result.failed), result.last_status, result.last_error, COUNT(rounds),
      COUNT(result.slowest_held_nanoseconds / 1000), COUNT(result.slowest_capture_nanoseconds / 1000));
  // Measured: 2 of 5,960.
  EXPECT(result.incomplete * 100 <= result.captures);
  // Measured: none of 5,960. Under a sanitizer, or where the host takes its processors away, there are some.
  // One always may be.
  EXPECT(result.timed_out * 100 <= result.captures * (settings.is_emulated ? 100 : 5) + 100);
  // Eight busy threads leave the helper little CPU: ten captures a second under a sanitizer on two busy CPUs.
  EXPECT(result.captures > (settings.is_emulated ? 0 : settings.stress_milliseconds / 1000) && result.reads > 0);
  EXPECT(result.failed == 0);
  EXPECT(stuck == 0 && lost_children == 0 && lost_exceptions == 0);
  EXPECT(cunwind_test_reap_zombies() == 0);
  // Fewer descriptors are no leak: an earlier test may still close its own.
  EXPECT(open_files() <= files);
}
