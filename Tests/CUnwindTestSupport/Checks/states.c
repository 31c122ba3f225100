// States of a thread × methods of a capture: the stack is whole, and the thread runs on.

#define _GNU_SOURCE
#include <CUnwind.h>
#include <signal.h>
#include <unistd.h>

#include "Support/checks.h"

/// A state of a thread, and the methods that give a whole stack in it.
typedef struct state {
  const char *name;
  cunwind_test_posture posture;
  uint32_t depth;
  bool by_read, by_stop, by_signal;
} state;

// With about 1 KiB per frame, 200 frames exceed the part that is copied of a stack whose end is unknown.
static const state states[] = {
    {"on CPU", CUNWIND_TEST_SPINNING, 0, .by_stop = true, .by_signal = true},
    {"on CPU", CUNWIND_TEST_SPINNING, 200, .by_stop = true, .by_signal = true},
    {"in a signal handler", CUNWIND_TEST_IN_SIGNAL_HANDLER, 3, .by_stop = true, .by_signal = true},
    {"on an alternate stack", CUNWIND_TEST_IN_ALTERNATE_STACK, 3, .by_stop = true, .by_signal = true},
    {"below a stale return address", CUNWIND_TEST_BELOW_LEFTOVER, 3, .by_stop = true, .by_signal = true},
    {"after a call of NULL", CUNWIND_TEST_CALLED_NULL, 3, .by_stop = true, .by_signal = true},
    {"blocked under a frame without a fixed size", CUNWIND_TEST_IN_ALLOCA, 3, .by_read = true, .by_stop = true},
    {"blocking signals", CUNWIND_TEST_BLOCKING_SIGNALS, 3, .by_stop = true},
};

static uint32_t frames_in_posture(void) {
  uint32_t count = 0;
  for (uint32_t index = 0; index < cunwind_test_stack.frame_count; index++) {
    const cunwind_frame *frame = &cunwind_test_stack.frames[index];
    count += cunwind_test_thread_contains(frame->is_exact ? frame->address : frame->address - 1);
  }
  return count;
}

static void check_state(const state *state, cunwind_test_method method, const char *name) {
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, state->posture, state->depth, SIGPROF)) return;
  // The function whose frame has no fixed size does not recurse.
  uint32_t expected = state->posture == CUNWIND_TEST_IN_ALLOCA ? 1 : state->depth + 1;
  cunwind_status status = cunwind_test_capture(&subject, method);
  cunwind_test_say("\n  %s, depth %u, by %s: status %d, errno %d, end %d, %u frames, %llu us", state->name,
                   state->depth, name, status, subject.info.error, cunwind_test_stack.end,
                   cunwind_test_stack.frame_count, COUNT(subject.info.capture_nanoseconds / 1000));
  EXPECT(cunwind_test_is_whole(status) && cunwind_test_stack.omitted_at == 0);
  EXPECT(frames_in_posture() >= expected);
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

void cunwind_check_states(int unused) {
  (void)unused;
  for (size_t index = 0; index < sizeof states / sizeof states[0]; index++) {
    if (states[index].by_read) check_state(&states[index], cunwind_capture_read, "read");
    if (states[index].by_stop) check_state(&states[index], cunwind_capture_stop, "stop");
    if (states[index].by_signal) check_state(&states[index], cunwind_capture_signal, "signal");
  }
}

// 2,000 frames of 1 KiB are more than is copied.
void cunwind_check_deep_stack(int by_signal) {
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_SPINNING, 2000, SIGPROF)) return;
  const cunwind_stack *stack = &cunwind_test_stack;
  EXPECT(
      cunwind_test_is_whole(cunwind_test_capture(&subject, by_signal ? cunwind_capture_signal : cunwind_capture_stop)));
  cunwind_test_say("%u frames", stack->frame_count);
  EXPECT(stack->frame_count <= CUNWIND_MAX_FRAMES && stack->omitted_at > 0);
  EXPECT(subject.info.stack_bytes <= CUNWIND_MAX_STACK_BYTES);
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

void cunwind_check_unknown_code(int unused) {
  (void)unused;
  cunwind_test_subject subject;
  const cunwind_stack *stack = &cunwind_test_stack;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_UNDER_NEW_CODE, 3, SIGPROF)) return;
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_OK);
  cunwind_test_say("end %d, %u frames, %u of the function", stack->end, stack->frame_count, frames_in_posture());
  EXPECT(stack->end == CUNWIND_END_UNKNOWN_CODE && frames_in_posture() >= 4);
  uint32_t guesses = 0;
  for (uint32_t index = 0; index < stack->frame_count; index++) {
    const cunwind_frame *frame = &stack->frames[index];
    EXPECT(frame->is_uncertain >= (guesses > 0) && !(frame->is_uncertain && index < 2));
    EXPECT(frame->is_uncertain || !cunwind_test_thread_contains(frame->address));
    guesses += frame->is_uncertain;
  }
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

// A sample of a stop has the same frames as one of a read, so that both count as one place.
void cunwind_check_same_place(int unused) {
  (void)unused;
  cunwind_test_subject subject;
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_IN_ALLOCA, 3, SIGPROF)) return;
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_read) == CUNWIND_OK);
  uint64_t address = cunwind_test_stack.frames[0].address;
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_OK);
  cunwind_test_say("%#llx, %#llx", COUNT(address), COUNT(cunwind_test_stack.frames[0].address));
  EXPECT(address != 0 && address == cunwind_test_stack.frames[0].address);
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

void cunwind_check_blocked_signal(int unused) {
  (void)unused;
  cunwind_test_subject subject;
  cunwind_thread_status status = {0};
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_BLOCKING_SIGNALS, 3, SIGPROF)) return;
  cunwind_thread_inspect(subject.thread, &status);
  EXPECT(status.blocked_signals >> (SIGPROF - 1) & 1);
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_signal) == CUNWIND_SIGNAL_BLOCKED);
  EXPECT(cunwind_test_stack.frame_count == 0);
  EXPECT(subject.info.capture_nanoseconds < CUNWIND_SIGNAL_TIMEOUT_NANOSECONDS);
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}

// The parent of a vfork(2) waits in state D until its child is done, which waits for the end of this check: no capture
// returns because the wait is over.
void cunwind_check_uninterruptible_sleep(int unused) {
  (void)unused;
  cunwind_test_subject subject;
  cunwind_thread_status status = {0};
  if (!cunwind_test_subject_start(&subject, CUNWIND_TEST_IN_VFORK, 3, SIGPROF)) return;
  // It calls vfork(2) a moment after it has reported that.
  for (int tries = 0; tries < 30000 && status.state != 'D'; tries++) {
    cunwind_thread_inspect(subject.thread, &status);
    usleep(1000);
  }
  EXPECT(status.is_blocked && status.state == 'D');
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_read) == CUNWIND_OK);
#if defined(__aarch64__)
  // glibc's vfork leaves its return address in a register, which /proc does not show.
  EXPECT(cunwind_test_stack.frame_count > 0);
#else
  EXPECT(cunwind_test_stack.end == CUNWIND_END_COMPLETE && frames_in_posture() >= 4);
#endif
  EXPECT(subject.info.held_nanoseconds == 0);
  // The stop releases the thread at its time limit; the thread's wait goes on.
  EXPECT(cunwind_test_capture(&subject, cunwind_capture_stop) == CUNWIND_TIMED_OUT);
  cunwind_thread_inspect(subject.thread, &status);
  EXPECT(status.state == 'D');
  EXPECT(cunwind_test_subject_stop(&subject) > 0);
}
