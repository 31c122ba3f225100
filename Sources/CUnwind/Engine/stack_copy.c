// Copies a stack into the engine's buffer: in one piece, or in two if it is very deep.

#define _GNU_SOURCE
#include "Engine/stack_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "System/raw_system_call.h"

bool cunwind_stack_copy_init(cunwind_stack_copy *copy) {
  memset(copy, 0, sizeof *copy);
  copy->bytes = cunwind_map(CUNWIND_MAX_STACK_BYTES, 0);
  if (!copy->bytes) return false;
  copy->touched = cunwind_touch(copy->bytes, 0, 1);
  return true;
}

void cunwind_stack_copy_touch(cunwind_stack_copy *copy, const cunwind_stack_bounds *bounds) {
  // A stack pointer that is not within them has an end that is not known.
  uint64_t most = bounds->high > bounds->low ? bounds->high - bounds->low : 0;
  if (most < CUNWIND_FIRST_COPY_BYTES) most = CUNWIND_FIRST_COPY_BYTES;
  if (bounds->other_high > bounds->other_low) most += bounds->other_high - bounds->other_low;
  most += CUNWIND_RED_ZONE_BYTES;
  if (most > CUNWIND_MAX_STACK_BYTES) most = CUNWIND_MAX_STACK_BYTES;
  copy->touched = cunwind_touch(copy->bytes, copy->touched, most);
}

cunwind_stack_copy *cunwind_copy_create(void) {
  cunwind_stack_copy *copy = malloc(sizeof *copy);
  if (copy && cunwind_stack_copy_init(copy)) return copy;
  free(copy);
  return NULL;
}

void cunwind_copy_destroy(cunwind_stack_copy *copy) {
  if (copy) munmap(copy->bytes, CUNWIND_MAX_STACK_BYTES);
  free(copy);
}

CUNWIND_BARE uint64_t cunwind_stack_end(const cunwind_stack_bounds *bounds, uint64_t stack_pointer) {
  if (stack_pointer >= bounds->low && stack_pointer < bounds->high) return bounds->high;
  uint64_t end = stack_pointer + CUNWIND_FIRST_COPY_BYTES;
  return end > stack_pointer ? end : UINT64_MAX;
}

CUNWIND_BARE void cunwind_copy_stack(cunwind_stack_copy *copy, uint64_t stack_pointer,
                                     const cunwind_stack_bounds *bounds) {
  uint64_t high = cunwind_stack_end(bounds, stack_pointer);
  bool has_other = bounds->other_high > bounds->other_low;
  copy->low = stack_pointer - CUNWIND_RED_ZONE_BYTES;
  copy->length = copy->outer_low = copy->outer_length = 0;
  copy->has_gap = false;
  if (high <= stack_pointer || copy->low > stack_pointer) return;
  uint64_t wanted = high - copy->low, inner = wanted;
  if (inner > CUNWIND_MAX_STACK_BYTES || has_other) {
    uint64_t room = CUNWIND_MAX_STACK_BYTES - CUNWIND_OUTER_BYTES;
    inner = wanted < room ? wanted : room;
  }
  copy->length = cunwind_guarded_read(copy->low, copy->bytes, inner);
  if (copy->length == 0) {
    // An unused red zone can lie below the lowest mapped page of the stack.
    copy->low = stack_pointer;
    copy->length = cunwind_guarded_read(copy->low, copy->bytes, inner - CUNWIND_RED_ZONE_BYTES);
  }
  if (has_other) {
    uint64_t other = bounds->other_high - bounds->other_low;
    copy->outer_low = bounds->other_low;
    copy->outer_length = cunwind_guarded_read(copy->outer_low, copy->bytes + copy->length,
                                              other < CUNWIND_OUTER_BYTES ? other : CUNWIND_OUTER_BYTES);
  } else if (inner < wanted && copy->length == inner) {
    copy->has_gap = true;
    copy->outer_low = high - CUNWIND_OUTER_BYTES;
    copy->outer_length = cunwind_guarded_read(copy->outer_low, copy->bytes + copy->length, CUNWIND_OUTER_BYTES);
  }
}

static bool read_piece(const uint8_t *bytes, uint64_t low, uint64_t length, uint64_t address, void *to, size_t size) {
  uint64_t offset = address - low;
  if (address < low || offset > length || size > length - offset) return false;
  memcpy(to, bytes + offset, size);
  return true;
}

bool cunwind_stack_copy_read(const cunwind_stack_copy *copy, uint64_t address, void *to, size_t size) {
  return read_piece(copy->bytes, copy->low, copy->length, address, to, size) ||
         read_piece(copy->bytes + copy->length, copy->outer_low, copy->outer_length, address, to, size);
}
