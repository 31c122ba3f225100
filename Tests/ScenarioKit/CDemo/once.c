#include "CDemo.h"

// From dispatch/once.h, which only a Swift toolchain has on its include path. dispatch_once_t is a word, and libdispatch exports
// the function.
extern void dispatch_once_f(intptr_t *predicate, void *context, void (*function)(void *));

void demo_once(intptr_t *token, void (*work)(void *), void *argument) {
  dispatch_once_f(token, argument, work);
  // Work after the call keeps it from becoming a jump, so that this function stays on the stack.
  __asm__ volatile("");
}
