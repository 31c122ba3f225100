// The process's mappings, which are read once for many threads.

#define _GNU_SOURCE
#include "Memory/mappings.h"

#include <string.h>
#include <sys/mman.h>

#include "Memory/guarded_memory.h"
#include "Support/checks.h"
#include "System/raw_system_call.h"

#define LOOKUPS 1000

static bool is_in(const cunwind_mapping *mapping, uint64_t address) {
  return mapping && mapping->low <= address && address < mapping->high;
}

struct path_of {
  uint64_t address, low;
  bool is_found, is_right;
};

static bool look_at_path(const cunwind_mapping *mapping, const char *path, size_t length, void *context) {
  struct path_of *wanted = context;
  wanted->is_right &= mapping->low >= wanted->low && path[0] == '/' && !memchr(path, '\n', length);
  wanted->low = mapping->high;
  wanted->is_found |= is_in(mapping, wanted->address);
  return !wanted->is_found;
}

static bool has_path(cunwind_mappings *mappings, uint64_t address, size_t room) {
  char path[4096];
  struct path_of wanted = {.address = address, .is_right = true};
  cunwind_mapped_paths(mappings, path, room < sizeof path ? room : sizeof path, look_at_path, &wanted);
  EXPECT(wanted.is_right);
  return wanted.is_found;
}

void cunwind_check_mappings(int unused) {
  (void)unused;
  cunwind_mappings mappings;
  if (!EXPECT(cunwind_mappings_init(&mappings))) return;
  uint64_t here = (uint64_t)(uintptr_t)&mappings, began = cunwind_now();
  for (int lookup = 0; lookup < LOOKUPS; lookup++) {
    const cunwind_mapping *stack = cunwind_mapping_at(&mappings, here);
    EXPECT(is_in(stack, here) && stack->is_writable);
  }
  // However slow the machine is.
  EXPECT(mappings.reads <= 1 + (cunwind_now() - began) / CUNWIND_MAP_AGE_NANOSECONDS);
  EXPECT(!cunwind_mapping_at(&mappings, 1));
  uint64_t code = (uint64_t)(uintptr_t)cunwind_check_mappings;
  const cunwind_mapping *of_code = cunwind_mapping_at(&mappings, code);
  EXPECT(is_in(of_code, code) && !of_code->is_writable && of_code->file != 0);

  EXPECT(has_path(&mappings, code, SIZE_MAX) && !has_path(&mappings, code, 5) && !has_path(&mappings, here, SIZE_MAX));

  // A mapping that is new is found once the last reading is some milliseconds old.
  uint8_t *added = cunwind_map(CUNWIND_PAGE_BYTES, 0);
  if (EXPECT(added)) {
    uint64_t address = (uint64_t)(uintptr_t)added + 8;
    mappings.read_at -= 2 * CUNWIND_MISSING_AGE_NANOSECONDS;
    EXPECT(is_in(cunwind_mapping_at(&mappings, address), address));
    munmap(added, CUNWIND_PAGE_BYTES);
  }
  cunwind_mappings_destroy(&mappings);
}
