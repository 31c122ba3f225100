// Blocking calls under captures, as InterruptedCallsTests has them on x86-64: no EINTR, no early return, whole stacks.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <CUnwindTestSupport.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checks.h"

/// Captures of each call: by the policy, and by stop alone where the call goes on after a stop.
enum { CAPTURES = 60, STOPS = 30, CALL_MILLISECONDS = 12, LOOKS = 4 };

static cunwind_stack stack;
static cunwind_capture_info info;
static unsigned seed = 1;

static bool is_socket(uint64_t descriptor) {
  struct stat status;
  return descriptor < 1 << 20 && fstat((int)descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

static bool is_whole(cunwind_status status) { return status == CUNWIND_OK && stack.end == CUNWIND_END_COMPLETE; }

// The policy of StackCapture: read, and stop only a thread that runs or waits in a call that goes on after it.
static cunwind_status capture_by_policy(cunwind_engine *engine, cunwind_thread *thread, bool *was_blocked) {
  cunwind_status status = CUNWIND_FAILED;
  for (int look = 0; look < LOOKS; look++) {
    cunwind_thread_status is;
    if (cunwind_thread_inspect(thread, &is) != CUNWIND_OK) return CUNWIND_NO_SUCH_THREAD;
    *was_blocked = is.is_blocked;
    if (!is.is_blocked) return cunwind_capture_stop(engine, thread, &stack, &info);
    status = cunwind_capture_read(engine, thread, &stack, &info);
    if (is_whole(status)) return status;
    bool may_stop = is.state != 'D' && !cunwind_call_is_interrupted_by_stop(is.system_call, is_socket(is.arguments[0]));
    // Until it stops, the thread may have returned from the call: emulated, that takes a millisecond.
    if (status == CUNWIND_OK && may_stop) {
      *was_blocked = false;
      return cunwind_capture_stop(engine, thread, &stack, &info);
    }
    if (status != CUNWIND_NOT_BLOCKED && status != CUNWIND_MOVED) return status;
  }
  return status;
}

// glibc's wrappers of these two leave the return address in a register, which /proc does not show, and their first
// argument where the result overwrites it. So a read stack has one frame, and the call that a stop has interrupted
// cannot begin again.
static bool is_bare(const cunwind_test_call *call) {
#if defined(__aarch64__)
  return strcmp(call->name, "semtimedop") == 0 || strcmp(call->name, "io_getevents") == 0;
#else
  (void)call;
  return false;
#endif
}

static bool shows_call(size_t index) {
  for (uint32_t number = 0; number < stack.frame_count; number++) {
    const cunwind_frame *frame = &stack.frames[number];
    if (cunwind_test_call_contains(index, frame->is_exact ? frame->address : frame->address - 1)) return true;
  }
  return false;
}

static void check_call(size_t index) {
  cunwind_test_call call = cunwind_test_call_at(index);
  cunwind_engine *engine = cunwind_test_engine(SIGPROF);
  cunwind_test_blocker *blocker = engine ? cunwind_test_blocker_start(index, CALL_MILLISECONDS) : NULL;
  cunwind_thread *thread =
      blocker ? cunwind_thread_open(cunwind_test_blocker_tid(blocker), CUNWIND_ALL_THREAD_FILES, NULL) : NULL;
  uint32_t taken = 0, incomplete = 0, without_call = 0, captures = CAPTURES + (call.is_ended_by_stop ? 0 : STOPS);
  cunwind_engine_refresh_images(engine);
  for (uint32_t number = 0; thread && number < captures; number++) {
    bool was_blocked = false;
    usleep((useconds_t)(rand_r(&seed) % 6000));
    cunwind_status status = number < CAPTURES ? capture_by_policy(engine, thread, &was_blocked)
                                              : cunwind_capture_stop(engine, thread, &stack, &info);
    if (status != CUNWIND_OK) continue;
    taken++;
    incomplete += stack.end != CUNWIND_END_COMPLETE;
    without_call += was_blocked && !shows_call(index);
  }
  cunwind_thread_close(thread);
  cunwind_test_blocker_result result = {.failed = 1};
  if (blocker) result = cunwind_test_blocker_stop(blocker);
  cunwind_engine_destroy(engine);
  checked.calls += result.iterations;
  checked.early += result.early;
  bool is_whole = incomplete == 0 && without_call == 0;
  bool can_restart = !is_bare(&call) && (cunwind_test_calls_can_restart() || !call.is_ended_by_stop);
  bool goes_on = result.interrupted == 0 || !can_restart;
  *(can_restart ? &checked.interrupted : &checked.interrupted_bare) += result.interrupted;
  checked.incomplete += incomplete;
  // A thread that moves on during every attempt to read it has no stack; that is rare. The kernel's timeouts count
  // ticks, of which several arrive at once when the host has not run the machine: a few calls return early without
  // captures, too.
  check((is_whole || is_bare(&call)) && goes_on && result.early * 10 <= result.iterations && result.failed == 0 &&
            taken >= captures * 9 / 10,
        call.name,
        "%u calls: %u EINTR, %u early, %u failed (errno %d); %u captures: %u incomplete, %u without the call",
        result.iterations, result.interrupted, result.early, result.failed, result.error, taken, incomplete,
        without_call);
}

void check_calls(void) {
  for (size_t index = 0; index < cunwind_test_call_count(); index++) check_call(index);
}
