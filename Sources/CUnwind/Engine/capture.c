// The part that all captures share: copy, unwind, and repeat both if the copy was too small.

#define _GNU_SOURCE
#include <string.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

// The number of bytes copied beyond the first function's frame: that function's locals are there.
#define BEYOND_FIRST_FRAME 512u

void cunwind_clear(cunwind_stack *stack) {
  stack->frame_count = stack->omitted_at = 0;
  stack->end = CUNWIND_END_COMPLETE;
}

// Finds the end of the stack that contains `address`. pthread_getattr_np(3) is not safe for a thread that may end.
static bool find_bounds(cunwind_engine *engine, uint64_t address, cunwind_stack_bounds *bounds) {
  const cunwind_mapping *mapping = cunwind_mapping_at(&engine->modules.mappings, address);
  if (!mapping || !mapping->is_writable) return false;
  *bounds = (cunwind_stack_bounds){.low = mapping->low, .high = mapping->high};
  return true;
}

// No unwind needs the arguments, environment and thread-local storage above a thread's first function.
static void learn_end(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack *stack,
                      uint64_t stack_pointer) {
  cunwind_stack_bounds found = thread->bounds;
  bool is_known = stack_pointer >= found.low && stack_pointer < found.high;
  if (!is_known && !find_bounds(engine, stack_pointer, &found)) return;
  uint64_t first = stack->frames[stack->frame_count - 1].stack_pointer;
  if (first >= stack_pointer && first < found.high && found.high - first > BEYOND_FIRST_FRAME) {
    found.high = first + BEYOND_FIRST_FRAME;
  }
  thread->bounds = found;
}

bool cunwind_finish(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy *copy,
                    const cunwind_registers *registers, cunwind_stack *stack, bool may_retake) {
  uint64_t stack_pointer = registers->value[CUNWIND_SP];
  uint64_t copied_to = cunwind_stack_end(&thread->bounds, stack_pointer);
  // Not before the copy: a thread in munmap(2) may keep a reader of the process's memory waiting, and has to be stopped
  // before it leaves the call.
  cunwind_update_images(engine);
  engine->unwinder.copy = copy;
  cunwind_unwind(&engine->unwinder, registers, stack);
  thread->bounds.other_low = thread->bounds.other_high = 0;
  if (stack->end == CUNWIND_END_COMPLETE) learn_end(engine, thread, stack, stack_pointer);
  if (stack->end != CUNWIND_END_NOT_IN_COPY || !may_retake) return true;

  cunwind_stack_bounds found;
  uint64_t missing = engine->unwinder.missing;
  if (!find_bounds(engine, missing, &found)) return true;
  if (stack_pointer >= found.low && stack_pointer < found.high && missing >= stack_pointer) {
    thread->bounds = found;
    return found.high <= copied_to;
  }
  // The unwind may also need words below the missing one: its frame begins at the SP of the last frame.
  uint64_t outermost = stack->frames[stack->frame_count - 1].stack_pointer;
  thread->bounds.other_low = outermost >= found.low && outermost <= missing ? outermost : missing;
  thread->bounds.other_high = found.high;
  return false;
}

const cunwind_context_layout *cunwind_context_prepare(cunwind_engine *engine, cunwind_thread *thread) {
  const cunwind_context_layout *layout = cunwind_context_layout_now();
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_NOT_READ);
  if (!layout) return NULL;
  // A thread keeps its thread pointer. If it has ended, another one may have its id by now.
  if (thread->thread_pointer == 0) {
    uint64_t pointer = layout->knows_pointers ? cunwind_thread_pointer(layout->robust_list, thread->tid) : 0;
    if (cunwind_thread_is_there(thread)) thread->thread_pointer = pointer;
  }
  if (thread->thread_pointer != 0) return layout;
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_NO_THREAD_POINTER);
  return NULL;
}

const cunwind_context *cunwind_engine_context(const cunwind_engine *engine) { return &engine->context; }

cunwind_status cunwind_capture_by(cunwind_copying *copy_once, cunwind_engine *engine, cunwind_thread *thread,
                                  cunwind_stack *stack, cunwind_capture_info *info) {
  uint64_t begin = cunwind_now();
  cunwind_status status;
  memset(info, 0, sizeof *info);
  cunwind_clear(stack);
  cunwind_context_clear(&engine->context, CUNWIND_CONTEXT_NOT_READ);
  for (bool may_retake = true;; may_retake = false) {
    const cunwind_stack_copy *copy = NULL;
    cunwind_registers registers;
    info->copied_at = 0;
    status = copy_once(engine, thread, &copy, &registers, info);
    if (status != CUNWIND_OK) {
      cunwind_clear(stack);
      break;
    }
    if (info->copied_at == 0) info->copied_at = cunwind_now();
    info->stack_bytes = copy->length + copy->outer_length;
    if (cunwind_finish(engine, thread, copy, &registers, stack, may_retake)) break;
  }
  info->capture_nanoseconds = cunwind_now() - begin;
  return status;
}
