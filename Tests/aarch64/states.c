// States × methods, as ThreadStateTests has them on x86-64.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <CUnwindTestSupport.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "checks.h"

typedef cunwind_status (*method)(cunwind_engine *, cunwind_thread *, cunwind_stack *, cunwind_capture_info *);

static cunwind_stack stack;
static cunwind_capture_info info;

typedef struct subject {
  cunwind_engine *engine;
  cunwind_test_thread *state;
  cunwind_thread *thread;
} subject;

// The engine comes second: its buffers could be mapped right above the thread's stack, and would count as a part of it.
static bool start(subject *subject, cunwind_test_posture posture, uint32_t depth) {
  *subject = (struct subject){.state = cunwind_test_thread_start(posture, depth)};
  subject->engine = subject->state ? cunwind_test_engine(SIGPROF) : NULL;
  if (subject->engine)
    subject->thread = cunwind_thread_open(cunwind_test_thread_tid(subject->state), CUNWIND_ALL_THREAD_FILES, NULL);
  if (subject->thread) cunwind_engine_refresh_images(subject->engine);
  return subject->thread != NULL;
}

// Returns whether the thread made rounds after its captures.
static bool stop(subject *subject) {
  cunwind_thread_close(subject->thread);
  bool runs_on = subject->state && cunwind_test_thread_stop(subject->state) > 0;
  cunwind_engine_destroy(subject->engine);
  return runs_on;
}

static uint32_t frames_in_posture(void) {
  uint32_t count = 0;
  for (uint32_t index = 0; index < stack.frame_count; index++) {
    const cunwind_frame *frame = &stack.frames[index];
    count += cunwind_test_thread_contains(frame->is_exact ? frame->address : frame->address - 1);
  }
  return count;
}

static cunwind_status capture(const subject *subject, method capture_by) {
  cunwind_status status = CUNWIND_FAILED;
  // The polling thread may be between two waits.
  for (int tries = 0; tries < 10; tries++) {
    status = capture_by(subject->engine, subject->thread, &stack, &info);
    if (status != CUNWIND_NOT_BLOCKED && status != CUNWIND_MOVED) break;
    usleep(1000);
  }
  checked.captures += status == CUNWIND_OK && stack.end == CUNWIND_END_COMPLETE;
  return status;
}

static void check_state(const cunwind_test_state *state, method capture_by, const char *method_name) {
  char name[120];
  subject subject;
  snprintf(name, sizeof name, "%s, depth %u, by %s", state->name, state->depth, method_name);
  bool has_started = start(&subject, state->posture, state->depth);
  cunwind_status status = has_started ? capture(&subject, capture_by) : CUNWIND_FAILED;
  bool is_whole = status == CUNWIND_OK && stack.end == CUNWIND_END_COMPLETE && stack.omitted_at == 0;
  bool is_right = is_whole && frames_in_posture() >= cunwind_test_state_frames(state);
  bool runs_on = stop(&subject);
  check(is_right && runs_on, name, "status %d, errno %d, end %d, %u frames, %s, %llu us", status, info.error, stack.end,
        stack.frame_count, runs_on ? "runs on" : "stays stopped", (unsigned long long)info.capture_nanoseconds / 1000);
}

// A sample of a stop has the same frames as one of a read, so that both count as one place.
static void check_same_place(void) {
  subject subject;
  uint64_t read = 0, stopped = 0;
  if (start(&subject, CUNWIND_TEST_IN_ALLOCA, 3)) {
    if (capture(&subject, cunwind_capture_read) == CUNWIND_OK) read = stack.frames[0].address;
    if (capture(&subject, cunwind_capture_stop) == CUNWIND_OK) stopped = stack.frames[0].address;
  }
  bool runs_on = stop(&subject);
  check(read != 0 && read == stopped && runs_on, "a stop and a read show a blocked thread at the same address",
        "%#llx, %#llx", (unsigned long long)read, (unsigned long long)stopped);
}

static void check_deep_stack(method capture_by, const char *name) {
  subject subject;
  bool has_started = start(&subject, CUNWIND_TEST_SPINNING, 2000);
  cunwind_status status = has_started ? capture(&subject, capture_by) : CUNWIND_FAILED;
  bool is_right = status == CUNWIND_OK && stack.end == CUNWIND_END_COMPLETE &&
                  stack.frame_count <= CUNWIND_MAX_FRAMES && stack.omitted_at > 0 &&
                  info.stack_bytes <= CUNWIND_MAX_STACK_BYTES;
  bool runs_on = stop(&subject);
  check(is_right && runs_on, name, "status %d, end %d, %u frames", status, stack.end, stack.frame_count);
}

static void check_blocked_signal(void) {
  subject subject;
  cunwind_thread_status status = {0};
  cunwind_status capture_status = CUNWIND_FAILED;
  if (start(&subject, CUNWIND_TEST_BLOCKING_SIGNALS, 3)) {
    cunwind_thread_inspect(subject.thread, &status);
    capture_status = capture(&subject, cunwind_capture_signal);
  }
  bool runs_on = stop(&subject);
  check(status.blocked_signals >> (SIGPROF - 1) & 1 && capture_status == CUNWIND_SIGNAL_BLOCKED &&
            stack.frame_count == 0 && runs_on,
        "a thread that blocks the signal is sent none", "status %d", capture_status);
}

static void check_uninterruptible_sleep(void) {
  subject subject;
  cunwind_thread_status before = {0}, after = {0};
  cunwind_status read = CUNWIND_FAILED, stopped = CUNWIND_FAILED;
  uint32_t frames = 0, all_frames = 0;
  if (start(&subject, CUNWIND_TEST_IN_VFORK, 3)) {
    cunwind_thread_inspect(subject.thread, &before);
    read = capture(&subject, cunwind_capture_read);
    all_frames = stack.frame_count;
    if (read == CUNWIND_OK && stack.end == CUNWIND_END_COMPLETE) frames = frames_in_posture();
    stopped = capture(&subject, cunwind_capture_stop);
    cunwind_thread_inspect(subject.thread, &after);
  }
  bool runs_on = stop(&subject);
#if defined(__aarch64__)
  // glibc's vfork leaves its return address in a register, which /proc does not show.
  bool is_read = all_frames > 0;
#else
  bool is_read = frames >= 4;
#endif
  check(before.state == 'D' && before.is_blocked && read == CUNWIND_OK && is_read,
        "a thread in uninterruptible sleep is read", "state %c, status %d, %u of %u frames in the function",
        before.state ? before.state : '?', read, frames, all_frames);
  check(stopped == CUNWIND_TIMED_OUT && after.state == 'D' && runs_on, "and a stop gives it up in time",
        "status %d, state %c", stopped, after.state ? after.state : '?');
}

static void check_shared_signal(void) {
  cunwind_test_shared_signal_result result = cunwind_test_shared_signal();
  checked.captures += result.captures;
  // Emulated, a handler may come after the time limit; its signal still has to arrive.
  check(result.captures >= 100 && result.sent == 200 && result.arrived == 200 && result.is_put_back,
        "a signal that the app uses goes to its handler", "%llu captures, %llu of %llu arrived",
        (unsigned long long)result.captures, (unsigned long long)result.arrived, (unsigned long long)result.sent);
}

void check_states(void) {
  for (size_t index = 0; index < cunwind_test_state_count(); index++) {
    cunwind_test_state state = cunwind_test_state_at(index);
    if (state.by_read) check_state(&state, cunwind_capture_read, "read");
    if (state.by_stop) check_state(&state, cunwind_capture_stop, "stop");
    if (state.by_signal) check_state(&state, cunwind_capture_signal, "signal");
  }
  check_deep_stack(cunwind_capture_stop, "a stack beyond the limit keeps both ends, by stop");
  check_deep_stack(cunwind_capture_signal, "a stack beyond the limit keeps both ends, by signal");
  check_same_place();
  check_blocked_signal();
  check_uninterruptible_sleep();
  check_shared_signal();
}
