#include "CDemo.h"

// dispatch/once.h, which is on a Swift toolchain's own include path and not on every C compiler's: dispatch_once_t is a
// word, and the function is exported by libdispatch.
extern void dispatch_once_f(intptr_t *predicate, void *context, void (*function)(void *));

void demo_once(intptr_t *token, void (*work)(void *), void *argument) {
  dispatch_once_f(token, argument, work);
  // Something is left to do, so that the call is no jump and this function stays on the stack.
  __asm__ volatile("");
}
