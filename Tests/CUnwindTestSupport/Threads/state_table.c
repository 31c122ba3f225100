// The states in which stacks are captured, and the methods that give a whole stack in each.

#include "CUnwindTestSupport.h"

// With about 1 KiB per frame, 200 frames exceed the part that is copied of a stack whose end is unknown.
static const cunwind_test_state states[] = {
    {"on CPU", CUNWIND_TEST_SPINNING, 0, .by_stop = true, .by_signal = true},
    {"on CPU", CUNWIND_TEST_SPINNING, 200, .by_stop = true, .by_signal = true},
    {"in a signal handler", CUNWIND_TEST_IN_SIGNAL_HANDLER, 3, .by_stop = true, .by_signal = true},
    {"on an alternate stack", CUNWIND_TEST_IN_ALTERNATE_STACK, 3, .by_stop = true, .by_signal = true},
    {"below a stale return address", CUNWIND_TEST_BELOW_LEFTOVER, 3, .by_stop = true, .by_signal = true},
    {"after a call of NULL", CUNWIND_TEST_CALLED_NULL, 3, .by_stop = true, .by_signal = true},
    {"blocked under a frame without a fixed size", CUNWIND_TEST_IN_ALLOCA, 3, .by_read = true, .by_stop = true},
    {"blocking signals", CUNWIND_TEST_BLOCKING_SIGNALS, 3, .by_stop = true},
};

size_t cunwind_test_state_count(void) { return sizeof states / sizeof states[0]; }

cunwind_test_state cunwind_test_state_at(size_t index) { return states[index]; }

uint32_t cunwind_test_state_frames(const cunwind_test_state *state) {
  // The function whose frame has no fixed size does not recurse.
  return state->posture == CUNWIND_TEST_IN_ALLOCA ? 1 : state->depth + 1;
}
