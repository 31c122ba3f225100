// The ends of stacks, from /proc/self/maps. pthread_getattr_np(3) is not safe for a thread that may end meanwhile.

#define _GNU_SOURCE
#include "Engine/stack_map.h"

#include <string.h>
#include <sys/mman.h>

#include "Memory/guarded_memory.h"
#include "Memory/mappings.h"
#include "System/raw_system_call.h"

bool cunwind_stack_map_init(cunwind_stack_map *map) {
  memset(map, 0, sizeof *map);
  map->mappings = cunwind_map(CUNWIND_MAX_MAPPINGS * sizeof *map->mappings, MAP_NORESERVE);
  return map->mappings != NULL;
}

void cunwind_stack_map_destroy(cunwind_stack_map *map) {
  if (map->mappings) munmap(map->mappings, CUNWIND_MAX_MAPPINGS * sizeof *map->mappings);
  map->mappings = NULL;
}

static bool keep_writable(const cunwind_mapping *mapping, void *context) {
  cunwind_stack_map *map = context;
  if (mapping->is_writable && map->count < CUNWIND_MAX_MAPPINGS)
    map->mappings[map->count++] = (cunwind_stack_range){.low = mapping->low, .high = mapping->high};
  return true;
}

static void read_mappings(cunwind_stack_map *map, uint64_t now) {
  map->count = 0;
  map->read_at = now;
  map->reads++;
  cunwind_visit_mappings(keep_writable, map);
}

static bool search(const cunwind_stack_map *map, uint64_t address, cunwind_stack_bounds *bounds) {
  size_t first = 0, end = map->count;
  while (first < end) {
    size_t middle = first + (end - first) / 2;
    if (map->mappings[middle].high <= address) first = middle + 1;
    else end = middle;
  }
  if (first == map->count || map->mappings[first].low > address) return false;
  *bounds = (cunwind_stack_bounds){.low = map->mappings[first].low, .high = map->mappings[first].high};
  return true;
}

bool cunwind_stack_map_find(cunwind_stack_map *map, uint64_t address, cunwind_stack_bounds *bounds) {
  uint64_t now = cunwind_now();
  if (map->read_at == 0 || now - map->read_at > CUNWIND_MAP_AGE_NANOSECONDS) read_mappings(map, now);
  if (search(map, address, bounds)) return true;
  if (now - map->read_at <= CUNWIND_MISSING_AGE_NANOSECONDS) return false;
  read_mappings(map, now);
  return search(map, address, bounds);
}
