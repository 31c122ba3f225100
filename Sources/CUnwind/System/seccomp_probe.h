// The system calls for which a seccomp filter may kill.

#pragma once

#include <stdbool.h>
#include <stdint.h>

/// The calls of the engine that few programs make, so that a filter may kill for them.
typedef enum cunwind_rare_call {
  CUNWIND_CALL_READ_MEMORY,
  CUNWIND_CALL_PTRACE,
  CUNWIND_CALL_NAME_TRACER,
  CUNWIND_CALL_PERF_EVENT,
  CUNWIND_CALL_QUEUE_SIGNAL,
  CUNWIND_CALL_SET_SCHEDULING,
  CUNWIND_CALL_ROBUST_LIST,
  CUNWIND_RARE_CALLS
} cunwind_rare_call;

#pragma GCC visibility push(hidden)

/// Returns whether a seccomp filter kills the caller of `call`. Under a filter, a child process tries all calls, once
/// for each number of filters; later questions cost 10 us. True also where no child can be created.
bool cunwind_call_is_deadly(cunwind_rare_call call);

/// Returns the number of the calling thread's filters plus 1; 0: none. Before Linux 5.9 the number is not shown, and is
/// 0. Costs 0.1 us without a filter, 10 us with one.
uint32_t cunwind_seccomp_filters(void);

/// Tries all calls in child processes, for at most two seconds. `shares_memory`: the children copy nothing. Stores a
/// bit for each call that ended its child. Returns false if there is no child.
bool cunwind_try_rare_calls(bool shares_memory, uint32_t *deadly);

#pragma GCC visibility pop
