// The process that stops a thread: its request and its answer; and stops whose threads have not left the kernel yet.

#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"
#include "Engine/task_context.h"
#include "Machine/registers.h"

enum {
  CUNWIND_HELPER_BEGINS,
  CUNWIND_HELPER_WAITS,    ///< It waits for the thread to stop, and may have requested the stop.
  CUNWIND_HELPER_HAS_IT,   ///< The thread has stopped; the helper copies its stack and releases it.
  CUNWIND_HELPER_STAYS,    ///< Like CUNWIND_HELPER_WAITS, but longer: the thread is in the kernel.
  CUNWIND_HELPER_IS_LEFT,  ///< The parent no longer waits: when the thread stops, the helper only releases it.
};

typedef struct cunwind_stop_order {
  pid_t tid;
  cunwind_stack_bounds bounds;                   ///< The helper copies the stack within them, unless there is a `walk`.
  cunwind_async_walk *walk;                      ///< If not NULL, the helper fills this and does not copy the stack.
  const cunwind_context_layout *context_layout;  ///< NULL: the helper reads no context.
  uint64_t thread_pointer;
  int priority;   ///< That which the helper needs while it holds the thread; 0: none. Set by cunwind_run_helper().
  bool may_stay;  ///< A thread that does not stop in time is CUNWIND_PENDING instead of CUNWIND_TIMED_OUT.
} cunwind_stop_order;

typedef struct cunwind_stop_request {
  // The request.
  cunwind_stop_order order;
  cunwind_stack_copy *copy;
  uint64_t waits_until;  ///< Atomic: the end of the wait for a stop, in monotonic nanoseconds. The parent may move it.
  // The answer. Until there is one, `status` is CUNWIND_FAILED and `error` ECANCELED, for a helper that dies.
  cunwind_status status;
  int error;
  uint64_t held_nanoseconds;
  uint64_t copied_at;  ///< When the stack had been copied, right before the release, in monotonic nanoseconds.
  cunwind_ptrace_registers registers;
  cunwind_context context;
  char target[CUNWIND_TARGET_BYTES];  ///< The file behind the first argument, if the stop was pending; may be empty.
  // Shared while the helper runs.
  uint32_t may_begin;  ///< Futex. 0: the helper waits for the parent to name it as tracer (Yama).
  uint32_t phase;      ///< Atomic: either the parent stops waiting or the helper stops the thread, whichever is first.
  uint32_t alive;      ///< Futex, shared: the helper's tid. The kernel sets it to 0 when the helper has ended.
} cunwind_stop_request;

typedef struct cunwind_helper_memory {
  cunwind_stop_request *request;
  cunwind_stack_copy *copy;
  uint8_t *stack;  ///< With a guard page of `guard_bytes` at its low end.
  size_t guard_bytes;
  bool is_touched;      ///< The pages of the stack have been touched.
  pid_t unreaped;       ///< A helper that did not end in time and may still use this memory; 0 if there is none.
  uint64_t left_until;  ///< The time until which that helper may wait for its thread, in monotonic nanoseconds.
  bool name_as_tracer;  ///< The kernel requires PR_SET_PTRACER (Yama).
} cunwind_helper_memory;

/// A stop whose thread has not stopped yet, with the memory that its helper uses.
typedef struct cunwind_pending_stop {
  pid_t tid;       ///< 0: this place is free.
  bool is_wanted;  ///< False: the helper only releases the thread.
  cunwind_helper_memory helper;
} cunwind_pending_stop;

#pragma GCC visibility push(hidden)

/// The helper's only function; `request` is a `cunwind_stop_request`. It runs in a process that shares our memory and
/// our thread-local storage, with all signals blocked. So it uses only raw system calls and the memory in `request`.
int cunwind_stop_helper(void *request);

bool cunwind_helper_init(cunwind_helper_memory *helper);
void cunwind_helper_destroy(cunwind_helper_memory *helper);

/// Touches the pages of the stack once, so that no page fault happens while a thread is held.
void cunwind_helper_touch(cunwind_helper_memory *helper);

/// How long a late helper may run before it is killed, and a killed one until it ends, in nanoseconds (50 ms).
#define CUNWIND_HELPER_GRACE_NANOSECONDS 50000000ull

/// Reaps a helper that did not end in time; waits for its end for at most `bound` nanoseconds. Returns whether no
/// helper is left, so that its memory can be reused. Async-signal-safe: yes.
bool cunwind_helper_has_ended(cunwind_helper_memory *helper, uint64_t bound);

/// Creates a process that runs cunwind_stop_helper(). Returns its id, or a negative errno. Async-signal-safe: yes.
long cunwind_make_helper(cunwind_helper_memory *helper);

/// Waits until `alive` is 0: the helper has left our code; at most `bound` nanoseconds. Async-signal-safe: yes.
bool cunwind_wait_until_gone(uint32_t *alive, uint64_t bound);

/// Makes the thread begin its system call again, if the stop alone would make the call return EINTR. For the stop
/// helper, while PTRACE_INTERRUPT has stopped `tid` with `registers`. Makes only raw system calls, allocates nothing,
/// and cannot block. Async-signal-safe: yes.
void cunwind_restart_interrupted_call(pid_t tid, const cunwind_ptrace_registers *registers);

/// Sets the registers of the stopped thread. Async-signal-safe: yes.
void cunwind_set_stopped_registers(pid_t tid, cunwind_ptrace_registers *registers);

/// Returns whether a stop can make the system call `number` return EINTR. Async-signal-safe: yes.
bool cunwind_may_be_interrupted(long number);

/// Returns whether the stopped thread has a pending signal of the app, which may have ended its call: EINTR then belongs
/// to that signal, and stays. Takes the call's number and two of its arguments. Async-signal-safe: yes.
bool cunwind_has_pending_signal(pid_t tid, long interrupted_call, uint64_t fifth, uint64_t sixth);

// ---- Pending stops --------------------------------------------------------------------------------------------------

/// Stores a stop's registers, its system call and time, and the engine's context. Async-signal-safe: yes.
void cunwind_store_answer(cunwind_engine *engine, const cunwind_stop_request *answer, cunwind_registers *registers,
                          cunwind_capture_info *info);

/// Allocates a helper's memory, with a copy, to replace that of a stop set aside. False: no place or memory is left.
bool cunwind_prepare_spare(cunwind_engine *engine);

/// Sets aside the helper that still waits for `tid`; the spare takes its place. Async-signal-safe: yes.
void cunwind_set_aside(cunwind_engine *engine, pid_t tid, bool is_wanted);

/// Returns CUNWIND_OK if no earlier stop of the thread is under way, CUNWIND_PENDING if one is and its result is
/// wanted, CUNWIND_FAILED if one is and only has to release the thread. Async-signal-safe: yes.
cunwind_status cunwind_pending_status(cunwind_engine *engine, pid_t tid);

/// Frees the memory of stops that were set aside, if the helper has ended and the result is not wanted.
void cunwind_tidy_pending(cunwind_engine *engine);

/// Ends the stops that were set aside, each within 50 ms, and frees their memory.
void cunwind_pending_destroy(cunwind_engine *engine);

/// Runs the helper on a thread; again if another engine's was in the way, or Yama requires that it is named.
cunwind_status cunwind_run_helper(cunwind_engine *engine, const cunwind_stop_order *order);

#pragma GCC visibility pop
