// Where stacks end, from mappings that are read once for many threads.

#define _GNU_SOURCE
#include "Engine/stack_map.h"

#include <sys/mman.h>

#include "Memory/guarded_memory.h"
#include "Support/checks.h"
#include "System/raw_system_call.h"

#define LOOKUPS 1000

void cunwind_check_stack_map(int unused) {
  (void)unused;
  cunwind_stack_map map;
  if (!EXPECT(cunwind_stack_map_init(&map))) return;
  cunwind_stack_bounds bounds = {0};
  uint64_t here = (uint64_t)(uintptr_t)&bounds, began = cunwind_now();
  for (int lookup = 0; lookup < LOOKUPS; lookup++)
    EXPECT(cunwind_stack_map_find(&map, here, &bounds) && bounds.low <= here && here < bounds.high);
  // However slow the machine is.
  EXPECT(map.reads <= 1 + (cunwind_now() - began) / CUNWIND_MAP_AGE_NANOSECONDS);
  EXPECT(!cunwind_stack_map_find(&map, 1, &bounds));
  // Code cannot be written, so it is no stack.
  EXPECT(!cunwind_stack_map_find(&map, (uint64_t)(uintptr_t)cunwind_check_stack_map, &bounds));

  // A mapping that is new is found once the last reading is some milliseconds old.
  uint8_t *added = cunwind_map(CUNWIND_PAGE_BYTES, 0);
  if (EXPECT(added)) {
    uint64_t address = (uint64_t)(uintptr_t)added + 8;
    map.read_at -= 2 * CUNWIND_MISSING_AGE_NANOSECONDS;
    EXPECT(cunwind_stack_map_find(&map, address, &bounds) && bounds.low <= address && address < bounds.high);
    munmap(added, CUNWIND_PAGE_BYTES);
  }
  cunwind_stack_map_destroy(&map);
}
