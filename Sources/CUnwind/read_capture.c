// Capture by read: a blocked thread's stack does not change, so it can be copied as it is, if it is proved afterwards
// that the thread was blocked throughout.
//
// The proof: switch counts, then SP and PC, then the copy, then SP and PC again, then the counts again. /proc gives SP
// and PC only of a thread that is off CPU (task_current_syscall waits until it is inactive). One that was off CPU both
// times and ran in between has been switched out once more, and each switch is counted before it happens.

#define _GNU_SOURCE
#include <string.h>

#include "engine.h"

bool cunwind_thread_has_stayed(const cunwind_thread_look *before, const cunwind_thread_look *after) {
  return after->is_blocked && before->system_call == after->system_call && before->pc == after->pc &&
         before->stack_pointer == after->stack_pointer &&
         memcmp(before->arguments, after->arguments, sizeof before->arguments) == 0 &&
         before->voluntary_switches == after->voluntary_switches &&
         before->involuntary_switches == after->involuntary_switches;
}

static cunwind_status copy_blocked(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                   cunwind_registers *registers, cunwind_capture_info *info) {
  (void)info;
  cunwind_thread_look before, after;
  memset(&before, 0, sizeof before);
  memset(&after, 0, sizeof after);
  if (!cunwind_thread_read_status(thread, &before) || !cunwind_thread_read_system_call(thread, &before)) {
    return CUNWIND_NO_SUCH_THREAD;
  }
  if (!before.is_blocked) return CUNWIND_NOT_BLOCKED;
  cunwind_stack_copy_take(&engine->copy, before.stack_pointer, &thread->bounds);
  if (!cunwind_thread_read_system_call(thread, &after) || !cunwind_thread_read_status(thread, &after)) {
    return CUNWIND_NO_SUCH_THREAD;
  }
  if (!cunwind_thread_has_stayed(&before, &after)) return CUNWIND_MOVED;
  cunwind_registers_from_system_call(registers, before.stack_pointer, before.pc, before.arguments,
                                     before.system_call >= 0);
  *copy = &engine->copy;
  return CUNWIND_OK;
}

cunwind_status cunwind_capture_read(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  return cunwind_capture_by(copy_blocked, engine, thread, stack, info);
}
