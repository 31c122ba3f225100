// Capture by read: a blocked thread's stack does not change, so a copy of it is valid if the thread was blocked
// throughout.
//
// The proof reads the count of time slices, then SP and PC, then the copy, then the count again. /proc shows SP and PC
// only for a thread that is off CPU (task_current_syscall waits until it is inactive), and the kernel counts a slice
// before the thread runs in it (sched_info_arrive). All of that takes 3 us, less than a wait for a fast disk.
//
// A kernel without CONFIG_SCHEDSTATS counts switches, not slices. Then the order is: switches, SP and PC, the copy, SP
// and PC, switches. A thread that was off CPU both times and ran in between was switched out once more, and the kernel
// counts that before it happens. This takes 15 us.

#define _GNU_SOURCE
#include <string.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

cunwind_status cunwind_thread_before_read(cunwind_thread *thread, cunwind_blocked_thread *before) {
  memset(before, 0, sizeof *before);
  before->slices = cunwind_thread_slices(thread);
  if (before->slices == 0 && !cunwind_thread_read_status(thread, &before->thread_status)) return CUNWIND_NO_SUCH_THREAD;
  if (!cunwind_thread_read_system_call(thread, &before->thread_status)) return CUNWIND_NO_SUCH_THREAD;
  if (!before->thread_status.shows_system_call || (before->slices == 0 && !before->thread_status.counts_switches))
    return CUNWIND_NOT_SHOWN;
  return before->thread_status.is_blocked ? CUNWIND_OK : CUNWIND_NOT_BLOCKED;
}

static bool is_the_same(const cunwind_thread_status *before, const cunwind_thread_status *after) {
  return after->is_blocked && before->system_call == after->system_call && before->pc == after->pc &&
         before->stack_pointer == after->stack_pointer &&
         memcmp(before->arguments, after->arguments, sizeof before->arguments) == 0 &&
         before->voluntary_switches == after->voluntary_switches &&
         before->involuntary_switches == after->involuntary_switches;
}

cunwind_status cunwind_thread_after_read(cunwind_thread *thread, const cunwind_blocked_thread *before) {
  // Read the copy before the count: a thread that runs changes the count first.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (before->slices != 0) return cunwind_thread_slices(thread) == before->slices ? CUNWIND_OK : CUNWIND_MOVED;
  cunwind_thread_status after;
  memset(&after, 0, sizeof after);
  if (!cunwind_thread_read_system_call(thread, &after) || !cunwind_thread_read_status(thread, &after)) {
    return CUNWIND_NO_SUCH_THREAD;
  }
  return is_the_same(&before->thread_status, &after) ? CUNWIND_OK : CUNWIND_MOVED;
}

static cunwind_status copy_once(cunwind_engine *engine, cunwind_thread *thread, cunwind_blocked_thread *blocked) {
  cunwind_status status = cunwind_thread_before_read(thread, blocked);
  if (status != CUNWIND_OK) return status;
  cunwind_stack_copy_take(engine->copy, blocked->thread_status.stack_pointer, &thread->bounds);
  return cunwind_thread_after_read(thread, blocked);
}

// Reads the context in the same wait as the stack. It follows a proof of its own, so that it takes no time from the one
// of the stack. False: the thread has run meanwhile.
static bool add_context(cunwind_engine *engine, cunwind_thread *thread, const cunwind_context_layout *layout,
                        const cunwind_blocked_thread *blocked) {
  if (!layout) return true;
  cunwind_context_take(&engine->context, layout, thread->thread_pointer);
  if (cunwind_thread_after_read(thread, blocked) == CUNWIND_OK) return true;
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_MOVED);
  return false;
}

static cunwind_status copy_blocked(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                   cunwind_registers *registers, cunwind_capture_info *info) {
  (void)info;
  cunwind_blocked_thread blocked;
  const cunwind_context_layout *layout = cunwind_context_prepare(engine, thread);
  uint64_t begin = cunwind_now(), deadline = begin + CUNWIND_READ_TIMEOUT_NANOSECONDS;
  cunwind_status status;
  bool has_context;
  // In the first half of the time a stack without its context is read again; in the second half it counts.
  do {
    status = copy_once(engine, thread, &blocked);
    has_context = status == CUNWIND_OK && add_context(engine, thread, layout, &blocked);
  } while ((status == CUNWIND_OK && !has_context && cunwind_now() - begin < CUNWIND_READ_TIMEOUT_NANOSECONDS / 2) ||
           ((status == CUNWIND_NOT_BLOCKED || status == CUNWIND_MOVED) && cunwind_now() < deadline));
  if (status != CUNWIND_OK) return status;
  const cunwind_thread_status *thread_status = &blocked.thread_status;
  cunwind_registers_from_system_call(registers, thread_status->stack_pointer, thread_status->pc,
                                     thread_status->arguments, thread_status->system_call >= 0);
  *copy = engine->copy;
  return CUNWIND_OK;
}

cunwind_status cunwind_capture_read(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  return cunwind_capture_by(copy_blocked, engine, thread, stack, info);
}
