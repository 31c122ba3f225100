// The process that stops a thread: what it is asked, and what it answers.

#ifndef CUNWIND_STOP_HELPER_H
#define CUNWIND_STOP_HELPER_H

#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "async_walk.h"
#include "registers.h"
#include "stack_copy.h"

/// How far a helper is.
enum {
  CUNWIND_HELPER_BEGINS,
  CUNWIND_HELPER_WAITS,    ///< For the thread to stop, which may have been asked to.
  CUNWIND_HELPER_HAS_IT,   ///< The thread has stopped, and is copied and let go.
  CUNWIND_HELPER_IS_LEFT,  ///< As it waited for too long: when the thread stops, it is let go, and nothing else.
};

typedef struct cunwind_stop_request {
  // Asked.
  pid_t tid;
  cunwind_stack_bounds bounds;
  cunwind_stack_copy *copy;
  cunwind_async_walk *walk;  ///< Not NULL: this is what is read, and the stack is not copied.
  uint64_t timeout_nanoseconds;
  // Answered. Until the helper has answered, `status` is CUNWIND_FAILED and `error` ECANCELED: what is left when it
  // died.
  cunwind_status status;
  int error;
  uint64_t held_nanoseconds;
  cunwind_ptrace_registers registers;
  // Between the two.
  uint32_t may_begin;  ///< Futex. 0: the helper waits for the parent to name it as tracer (Yama).
  uint32_t phase;      ///< Atomic. The parent leaves a helper that waits, the helper takes a thread that has stopped.
  uint32_t alive;      ///< Futex, shared: the helper's tid, which the kernel makes 0 when it is gone.
} cunwind_stop_request;

#pragma GCC visibility push(hidden)

/// The helper's only function; `request` is a `cunwind_stop_request`. Runs in a process that shares our memory and our
/// thread-local storage, all signals blocked: nothing but raw system calls and what is in `request`.
int cunwind_stop_helper(void *request);

#pragma GCC visibility pop

#endif
