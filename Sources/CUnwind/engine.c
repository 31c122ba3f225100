// An engine's life, its images, and what all captures do at their end.

#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "raw_system_call.h"

cunwind_engine *cunwind_engine_create(int signal_number) {
  if (signal_number < 1 || signal_number > 64) {
    errno = EINVAL;
    return NULL;
  }
  cunwind_engine *engine = calloc(1, sizeof *engine);
  if (!engine) return NULL;
  engine->process = getpid();
  engine->signal_number = signal_number;
  if (cunwind_guarded_memory_works() && cunwind_modules_init(&engine->modules) &&
      cunwind_page_cache_init(&engine->pages) && cunwind_stack_copy_init(&engine->copy) &&
      cunwind_helper_init(&engine->helper) &&
      cunwind_unwinder_init(&engine->unwinder, &engine->modules, &engine->pages))
    return engine;
  int error = errno;
  cunwind_engine_destroy(engine);
  errno = error;
  return NULL;
}

void cunwind_engine_destroy(cunwind_engine *engine) {
  if (!engine) return;
  cunwind_signal_slot_destroy(engine);
  cunwind_unwinder_destroy(&engine->unwinder);
  cunwind_page_cache_destroy(&engine->pages);
  cunwind_modules_destroy(&engine->modules);
  // A helper that is still there writes into these; better to lose them than to give them to someone else.
  if (!engine->helper.unreaped) {
    cunwind_stack_copy_destroy(&engine->copy);
    cunwind_helper_destroy(&engine->helper);
  }
  free(engine);
}

size_t cunwind_engine_refresh_images(cunwind_engine *engine) {
  if (cunwind_modules_refresh(&engine->modules)) {
    cunwind_page_cache_flush(&engine->pages);
    cunwind_unwinder_flush(&engine->unwinder);
  }
  return engine->modules.count;
}

uint64_t cunwind_engine_image_generation(const cunwind_engine *engine) { return engine->modules.generation; }

size_t cunwind_engine_omitted_image_count(const cunwind_engine *engine) { return engine->modules.omitted_count; }

bool cunwind_engine_image(const cunwind_engine *engine, size_t index, cunwind_image *image) {
  if (index >= engine->modules.count) return false;
  *image = engine->modules.list[index].image;
  return true;
}

// How far beyond the first function's frame the copy goes on: that function's own locals lie there.
#define BEYOND_FIRST_FRAME 512u

void cunwind_stack_clear(cunwind_stack *stack) {
  stack->frame_count = stack->omitted_count = stack->omitted_at = 0;
  stack->is_omitted_count_exact = 1;
  stack->end = CUNWIND_END_COMPLETE;
}

// A thread's first function has nothing above it that an unwind needs, but arguments, environment, thread-local
// storage.
static void learn_end(cunwind_thread *thread, const cunwind_stack *stack, uint64_t stack_pointer) {
  cunwind_stack_bounds found = thread->bounds;
  bool is_known = stack_pointer >= found.low && stack_pointer < found.high;
  if (!is_known && !cunwind_stack_bounds_find(&found, stack_pointer)) return;
  uint64_t first = stack->frames[stack->frame_count - 1].stack_pointer;
  if (first >= stack_pointer && first < found.high && found.high - first > BEYOND_FIRST_FRAME) {
    found.high = first + BEYOND_FIRST_FRAME;
  }
  thread->bounds = found;
}

bool cunwind_finish_capture(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy *copy,
                            const cunwind_registers *registers, cunwind_stack *stack, bool may_retake) {
  uint64_t stack_pointer = registers->value[CUNWIND_SP];
  uint64_t copied_to = cunwind_stack_end(&thread->bounds, stack_pointer);
  engine->unwinder.copy = copy;
  cunwind_unwind(&engine->unwinder, registers, stack);
  thread->bounds.other_low = thread->bounds.other_high = 0;
  if (stack->end == CUNWIND_END_COMPLETE) learn_end(thread, stack, stack_pointer);
  if (stack->end != CUNWIND_END_NOT_IN_COPY || !may_retake) return true;

  cunwind_stack_bounds found;
  uint64_t missing = engine->unwinder.missing;
  if (!cunwind_stack_bounds_find(&found, missing)) return true;
  if (stack_pointer >= found.low && stack_pointer < found.high && missing >= stack_pointer) {
    thread->bounds = found;
    return found.high <= copied_to;
  }
  // Words below what was missed may be needed as well: the frame it belongs to begins at the last one's SP.
  uint64_t outermost = stack->frames[stack->frame_count - 1].stack_pointer;
  thread->bounds.other_low = outermost >= found.low && outermost <= missing ? outermost : missing;
  thread->bounds.other_high = found.high;
  return false;
}
