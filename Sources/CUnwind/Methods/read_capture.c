// Capture by read: a copy of a blocked thread's stack is valid if it stayed blocked (proof: Engine/thread_files.c).

#include "Engine/engine.h"
#include "Engine/thread_files.h"
#include "System/raw_system_call.h"

static cunwind_status copy_once(cunwind_engine *engine, cunwind_thread *thread) {
  // The proof after the copy also holds for a place that was seen earlier.
  cunwind_status status = thread->is_inspected ? cunwind_thread_may_be_read(thread) : CUNWIND_MOVED;
  if (status != CUNWIND_OK) status = cunwind_thread_before_read(thread);
  if (status != CUNWIND_OK) return status;
  cunwind_copy_stack(engine->helper.copy, thread->seen.stack_pointer, &thread->bounds);
  status = cunwind_thread_after_read(thread);
  if (status != CUNWIND_OK) thread->is_inspected = false;
  return status;
}

// Reads the context in the same wait as the stack. It follows a proof of its own, so that it takes no time from the one
// of the stack. False: the thread has run meanwhile.
static bool add_context(cunwind_engine *engine, cunwind_thread *thread, const cunwind_context_layout *layout) {
  if (!layout) return true;
  cunwind_read_context(&engine->context, layout, thread->thread_pointer);
  if (cunwind_thread_after_read(thread) == CUNWIND_OK) return true;
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_MOVED);
  thread->is_inspected = false;
  return false;
}

// Sets the registers that /proc shows of a thread: SP, PC, and in a system call those with the arguments. Unwinding needs
// rdi: glibc's vfork keeps its return address there, and its CFI says so. x0 already holds the call's result.
static void set_registers(cunwind_registers *to, const cunwind_thread_status *from) {
#if defined(__x86_64__)
  enum { FIRST = 0 };
#else
  enum { FIRST = 1 };
#endif
  to->known = 0;
  cunwind_set_register(to, CUNWIND_SP, from->stack_pointer);
  cunwind_set_register(to, CUNWIND_PC, from->pc);
  for (int index = FIRST; from->system_call >= 0 && index < 6; index++)
    cunwind_set_register(to, cunwind_argument_registers[index], from->arguments[index]);
}

static cunwind_status copy_blocked(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                   cunwind_registers *registers, cunwind_capture_info *info) {
  const cunwind_context_layout *layout = cunwind_context_prepare(engine, thread);
  uint64_t begin = cunwind_now(), deadline = begin + CUNWIND_READ_TIMEOUT_NANOSECONDS;
  cunwind_status status;
  bool has_context;
  // In the first half of the time a stack without its context is read again; in the second half it counts.
  do {
    status = copy_once(engine, thread);
    has_context = status == CUNWIND_OK && add_context(engine, thread, layout);
  } while ((status == CUNWIND_OK && !has_context && cunwind_now() - begin < CUNWIND_READ_TIMEOUT_NANOSECONDS / 2) ||
           ((status == CUNWIND_NOT_BLOCKED || status == CUNWIND_MOVED) && cunwind_now() < deadline));
  if (status != CUNWIND_OK) return status;
  set_registers(registers, &thread->seen);
  *copy = engine->helper.copy;
  info->is_as_inspected = thread->is_inspected;
  return CUNWIND_OK;
}

cunwind_status cunwind_capture_read(cunwind_engine *engine, cunwind_thread *thread, cunwind_stack *stack,
                                    cunwind_capture_info *info) {
  return cunwind_capture_by(copy_blocked, engine, thread, stack, info);
}
