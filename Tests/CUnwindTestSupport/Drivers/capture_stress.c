// Captures threads that hold the process's locks, and checks for damage: a lock that stays locked, a lost child, a
// leaked descriptor or process.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Drivers/churn.h"
#include "Support/bounded.h"

static int64_t open_files(void) {
  int64_t count = 0;
  DIR *directory = opendir("/proc/self/fd");
  if (!directory) return -1;
  while (readdir(directory)) count++;
  closedir(directory);
  return count;
}

static uint64_t reap_what_is_left(void) {
  uint64_t count = 0;
  while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) count++;
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
                    uint64_t deadline, cunwind_test_stress_result *result) {
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
    } else if (cunwind_test_had_no_time(status, &info)) {
      result->timed_out++;
    } else {
      result->failed++;
      result->last_status = status;
      result->last_error = info.error;
    }
  }
  cunwind_thread_close(thread);
}

cunwind_test_stress_result cunwind_test_stress(uint32_t milliseconds) {
  static cunwind_test_churner churners[CUNWIND_TEST_CHURNERS];
  static cunwind_stack stack;
  cunwind_test_stress_result result;
  memset(&result, 0, sizeof result);
  // The first engine of a process loads libunwind, which keeps two descriptors.
  cunwind_engine_destroy(cunwind_test_engine(SIGPROF));
  int64_t files = open_files();
  cunwind_engine *engine = cunwind_test_engine(27);
  int output = silence_output();
  if (!engine || output < 0 || cunwind_test_churn_start(churners) != 0) {
    result.failed = 1;
    result.last_error = errno;
    return result;
  }
  uint64_t deadline = cunwind_test_milliseconds_now() + milliseconds;
  for (unsigned turn = 0; cunwind_test_milliseconds_now() < deadline; turn++) {
    capture(engine, &churners[turn % CUNWIND_TEST_CHURNERS], &stack, deadline, &result);
  }
  cunwind_test_churn_stop(churners);
  restore_output(output);
  for (int kind = 0; kind < CUNWIND_TEST_CHURNERS; kind++) {
    result.rounds += churners[kind].rounds;
    result.stuck += churners[kind].rounds == 0 || churners[kind].is_stuck;
    result.lost_children += churners[kind].lost_children;
    result.lost_exceptions += churners[kind].lost_exceptions;
  }
  cunwind_engine_destroy(engine);
  result.zombies = reap_what_is_left();
  result.leaked_files = open_files() - files;
  return result;
}
