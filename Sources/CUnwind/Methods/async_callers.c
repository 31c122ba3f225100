// Async callers: finds the async functions on an unwound stack, reads their chains, and checks the result.

#include <string.h>

#include "Engine/engine.h"
#include "Engine/thread_files.h"
#include "System/raw_system_call.h"

static bool fill(cunwind_engine *engine, cunwind_async_frame *frame) {
  cunwind_unwinder *unwinder = &engine->unwinder;
  return cunwind_read(unwinder, frame->slot, frame->words, sizeof frame->words) &&
         cunwind_read(unwinder, frame->return_slot, &frame->return_address, sizeof frame->return_address) &&
         frame->words[0] != 0;
}

static uint32_t find_frames(cunwind_engine *engine, const cunwind_stack *stack, cunwind_async_walk *walk) {
  walk->frame_count = 0;
  for (uint32_t index = 0; index + 1 < stack->frame_count && walk->frame_count < CUNWIND_MAX_ASYNC_FRAMES; index++) {
    const cunwind_frame *frame = &stack->frames[index], *caller = &stack->frames[index + 1];
    // Only then the caller's stack pointer is the frame's CFA.
    if (caller->source != CUNWIND_FRAME_CFI || (stack->omitted_at != 0 && index + 1 == stack->omitted_at)) continue;
    cunwind_async_frame *found = &walk->frames[walk->frame_count];
    found->frame = index;
    if (cunwind_async_frame_slots(&engine->unwinder, frame->address, frame->is_exact, caller->stack_pointer,
                                  &found->slot, &found->return_slot) &&
        fill(engine, found))
      walk->frame_count++;
  }
  return walk->frame_count;
}

static cunwind_status read_stopped(cunwind_engine *engine, cunwind_thread *thread, cunwind_capture_info *info) {
  // That of a pending stop went with it.
  cunwind_helper_touch(&engine->helper);
  cunwind_status status = cunwind_run_helper(engine, &(cunwind_stop_order){.tid = thread->tid, .walk = &engine->walk});
  info->held_nanoseconds += engine->helper.request->held_nanoseconds;
  return status;
}

// Continues the proof of the capture: the thread must not have run since.
static cunwind_status read_blocked(cunwind_engine *engine, cunwind_thread *thread) {
  cunwind_status status = cunwind_thread_may_be_read(thread);
  if (status != CUNWIND_OK) return status;
  cunwind_read_async_chains(&engine->walk, thread->seen.stack_pointer);
  return cunwind_thread_after_read(thread);
}

// A chain is valid up to the first context whose function is not in the code of an image.
static void keep_valid(cunwind_engine *engine, cunwind_async_callers *callers) {
  const cunwind_async_context *context = engine->walk.contexts;
  for (uint32_t index = 0; index < engine->walk.frame_count; index++) {
    const cunwind_async_context *end = context + engine->walk.counts[index];
    for (const cunwind_async_context *at = context; at < end; at++) {
      uint64_t resume = cunwind_strip(at->resume);
      if (!cunwind_module_of_code(&engine->modules, resume)) break;
      cunwind_async_caller *caller = &callers->callers[callers->count++];
      caller->address = resume;
      caller->frame = engine->walk.frames[index].frame;
      caller->is_task_start = at->parent == 0;
    }
    context = end;
  }
}

cunwind_status cunwind_read_async_callers(cunwind_engine *engine, cunwind_thread *thread, bool by_stop,
                                          const cunwind_stack *stack, cunwind_async_callers *callers,
                                          cunwind_capture_info *info) {
  uint64_t begin = cunwind_now();
  callers->count = 0;
  // The copy of the last capture still has the words of the frames.
  if (find_frames(engine, stack, &engine->walk) == 0) return CUNWIND_OK;
  cunwind_status status = by_stop ? read_stopped(engine, thread, info) : read_blocked(engine, thread);
  if (status == CUNWIND_OK && engine->walk.has_moved) status = CUNWIND_MOVED;
  if (status == CUNWIND_OK) keep_valid(engine, callers);
  info->capture_nanoseconds += cunwind_now() - begin;
  return status;
}
