#include <stddef.h>

#include "CLinux.h"

// "SLWScope" in memory.
#define SCOPE_MAGIC 0x65706f6353574c53ull

// Read from outside while the thread is stopped at any instruction: a scope is complete before it is the innermost one.
static _Thread_local struct clinux_scope *volatile innermost;

void clinux_enter_scope(struct clinux_scope *scope, uint64_t payload, uint64_t bound, void *owner) {
  scope->magic = SCOPE_MAGIC;
  scope->payload = payload;
  scope->bound = bound;
  scope->outer = innermost;
  scope->owner = owner;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  innermost = scope;
}

void clinux_leave_scope(const struct clinux_scope *scope) {
  innermost = scope->outer;
  // The caller may reuse the memory of the scope after this.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

struct clinux_scope *clinux_innermost_scope(void) {
  return innermost;
}

const void *clinux_scope_variable(void) { return (const void *)&innermost; }
