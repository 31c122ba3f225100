// The section .debug_frame, for call frame information that a program does not need at run time (DWARF 5, 6.4.1). It is
// not mapped: another thread reads it from the file. It is never freed, because any engine may be using it.

#include <string.h>

#include "Unwinding/cfi.h"

typedef struct debug_frame {
  const struct debug_frame *next;  ///< The one that was added before.
  cunwind_image image;             ///< Its build ID and content hash.
  size_t size;
  uint8_t bytes[];
} debug_frame;

static const debug_frame *last;
static size_t total_bytes;

static const debug_frame *find(const cunwind_image *image) {
  bool is_known = image->build_id_length > 0 || image->content_hash != 0;
  const debug_frame *frame = is_known ? __atomic_load_n(&last, __ATOMIC_ACQUIRE) : NULL;
  while (frame && (frame->image.content_hash != image->content_hash ||
                   memcmp(frame->image.build_id, image->build_id, sizeof image->build_id) != 0))
    frame = frame->next;
  return frame;
}

bool cunwind_add_debug_frame(const cunwind_image *image, const void *section, size_t size) {
  if (find(image)) return true;
  // Whole pages: the cache of pages reads it.
  debug_frame *frame = size > CUNWIND_MAX_DEBUG_FRAME_BYTES - total_bytes ? NULL : cunwind_map(sizeof *frame + size, 0);
  if (!frame) return false;
  frame->next = last;
  frame->image = *image;
  frame->size = size;
  memcpy(frame->bytes, section, size);
  total_bytes += size;
  __atomic_store_n(&last, frame, __ATOMIC_RELEASE);
  return true;
}

/// A function's entry in 32-bit DWARF, with addresses of 8 bytes.
typedef struct __attribute__((packed)) entry {
  uint32_t length;
  uint32_t common;  ///< The place of its common entry; UINT32_MAX: it is one, and has other fields.
  uint64_t start, size;
} entry;

// Linkers leave the entries of functions that they have discarded, with the address 0, or that of other code. So code
// with two entries has none, unless these are of two copies of one function.
uint64_t cunwind_search_debug_frame(const cunwind_module *module, uint64_t pc, cunwind_entries *entries) {
  const debug_frame *frame = find(&module->image);
  if (!frame) return 0;
  const entry *found = NULL;
  uint64_t place = pc - module->image.base, low = (uint64_t)(uintptr_t)frame->bytes;
  for (size_t at = 0; frame->size - at >= sizeof *found;) {
    const entry *next = (const entry *)(frame->bytes + at);
    at += sizeof next->length;
    // Also in 64-bit DWARF, whose entries begin with 0xffffffff.
    if (next->length > frame->size - at) break;
    at += next->length;
    if (next->length < sizeof *next - sizeof next->length || next->common == UINT32_MAX) continue;
    if (next->start == 0 || place - next->start >= next->size) continue;
    if (found &&
        (found->length != next->length || memcmp(&found->start, &next->start, next->length - sizeof next->common) != 0))
      return 0;
    found = next;
  }
  *entries = (cunwind_entries){low, low + frame->size, .bias = module->image.base, .is_debug_frame = true};
  return (uint64_t)(uintptr_t)found;
}
