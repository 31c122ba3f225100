// The ends of stacks, from /proc/self/maps. pthread_getattr_np(3) is not safe for a thread that may end meanwhile.

#define _GNU_SOURCE
#include "Engine/stack_map.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "Memory/guarded_memory.h"
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

typedef struct maps_line {
  uint64_t low, high;
  int field;  // 0: low, 1: high, 2: permissions, 3: the rest.
  bool is_writable;
} maps_line;

// "7f5c8c000000-7f5c8c021000 rw-p 00000000 00:00 0 ...": proc_pid_maps(5).
static void take_letter(maps_line *line, char letter) {
  uint64_t digit = (uint64_t)(letter >= 'a' ? letter - 'a' + 10 : letter - '0');
  if (line->field == 0 && letter == '-') line->field = 1;
  else if (line->field < 3 && letter == ' ') line->field++;
  else if (line->field == 0) line->low = line->low * 16 + digit;
  else if (line->field == 1) line->high = line->high * 16 + digit;
  else if (line->field == 2 && letter == 'w') line->is_writable = true;
}

static void read_mappings(cunwind_stack_map *map, uint64_t now) {
  map->count = 0;
  map->read_at = now;
  map->reads++;
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return;
  char text[4096];
  maps_line line = {0, 0, 0, false};
  long got;
  while ((got = cunwind_raw(SYS_read, file, (long)text, sizeof text, 0, 0, 0)) > 0) {
    for (long index = 0; index < got; index++) {
      if (text[index] != '\n') {
        take_letter(&line, text[index]);
        continue;
      }
      if (line.is_writable && map->count < CUNWIND_MAX_MAPPINGS)
        map->mappings[map->count++] = (cunwind_mapping){.low = line.low, .high = line.high};
      line = (maps_line){0, 0, 0, false};
    }
  }
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
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
