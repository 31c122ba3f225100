#include "Methods/async_walk.h"

#include "Memory/guarded_memory.h"
#include "System/raw_system_call.h"

CUNWIND_BARE static bool is_unchanged(const cunwind_async_frame *frame, uint64_t stack_pointer) {
  uint64_t words[2];
  uint64_t return_address;
  return stack_pointer <= frame->slot && cunwind_guarded_read(frame->slot, words, sizeof words) == sizeof words &&
         words[0] == frame->words[0] && words[1] == frame->words[1] &&
         cunwind_guarded_read(frame->return_slot, &return_address, sizeof return_address) == sizeof return_address &&
         return_address == frame->return_address;
}

CUNWIND_BARE void cunwind_async_walk_take(cunwind_async_walk *walk, uint64_t stack_pointer) {
  uint32_t total = 0;
  walk->has_moved = false;
  for (uint32_t index = 0; index < walk->frame_count; index++) {
    walk->counts[index] = 0;
    if (!is_unchanged(&walk->frames[index], stack_pointer)) walk->has_moved = true;
  }
  if (walk->has_moved) return;
  for (uint32_t index = 0; index < walk->frame_count; index++) {
    uint64_t at = walk->frames[index].words[0];
    // A damaged chain may be circular: it ends at the bound.
    while (at != 0 && at % sizeof at == 0 && total < CUNWIND_MAX_ASYNC_CALLERS) {
      cunwind_async_context *context = &walk->contexts[total];
      if (cunwind_guarded_read(at, context, sizeof *context) != sizeof *context) break;
      total++;
      walk->counts[index]++;
      at = context->parent;
    }
  }
}
