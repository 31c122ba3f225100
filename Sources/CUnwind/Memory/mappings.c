#define _GNU_SOURCE
#include "Memory/mappings.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "Memory/guarded_memory.h"
#include "System/raw_system_call.h"

bool cunwind_mappings_init(cunwind_mappings *mappings) {
  memset(mappings, 0, sizeof *mappings);
  mappings->list = cunwind_map(CUNWIND_MAX_MAPPINGS * sizeof *mappings->list, MAP_NORESERVE);
  return mappings->list != NULL;
}

void cunwind_mappings_destroy(cunwind_mappings *mappings) {
  if (mappings->list) munmap(mappings->list, CUNWIND_MAX_MAPPINGS * sizeof *mappings->list);
  mappings->list = NULL;
}

enum { LOW, HIGH, PERMISSIONS, OFFSET, MAJOR, MINOR, INODE, REST };
/// The inode's number has up to 64 bits, the device's 32. This one number tells the files of a process apart.
#define INODE_FACTOR 0x9e3779b97f4a7c15ull

typedef struct maps_line {
  uint64_t number[REST];
  int field;
  bool is_writable;
  char *path;  // NULL: not wanted.
  size_t length, room;
} maps_line;

// "7f5c8c000000-7f5c8c021000 rw-p 00000000 fe:01 4711 /path": proc_pid_maps(5). The inode is decimal.
static void take_letter(maps_line *line, char letter) {
  bool is_end = letter == ' ' || (letter == '-' && line->field == LOW) || (letter == ':' && line->field == MAJOR);
  if (line->field == REST) {
    // Spaces come before the path.
    if (line->path && line->length < line->room && (letter != ' ' || line->length > 0))
      line->path[line->length++] = letter;
    return;
  }
  if (is_end) line->field++;
  else if (line->field == PERMISSIONS) line->is_writable |= letter == 'w';
  else {
    uint64_t digit = (uint64_t)(letter >= 'a' ? letter - 'a' + 10 : letter - '0');
    line->number[line->field] = line->number[line->field] * (line->field == INODE ? 10 : 16) + digit;
  }
}

static cunwind_mapping mapping_of(const maps_line *line) {
  uint64_t device = line->number[MAJOR] << 32 | line->number[MINOR], inode = line->number[INODE];
  return (cunwind_mapping){.low = line->number[LOW],
                           .high = line->number[HIGH],
                           .offset = line->number[OFFSET],
                           .file = inode == 0 ? 0 : device * INODE_FACTOR + inode,
                           .is_writable = line->is_writable};
}

// Hands each line to `use` until that returns false.
static void read_lines(char *path, size_t room, bool (*use)(const maps_line *line, void *context), void *context) {
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return;
  char text[4096];
  const maps_line empty = {.field = LOW, .path = path, .room = room};
  maps_line line = empty;
  bool goes_on = true;
  long got;
  while (goes_on && (got = cunwind_raw(SYS_read, file, (long)text, sizeof text, 0, 0, 0)) > 0) {
    for (long index = 0; index < got && goes_on; index++) {
      if (text[index] != '\n') {
        take_letter(&line, text[index]);
        continue;
      }
      goes_on = use(&line, context);
      line = empty;
    }
  }
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
}

static bool keep(const maps_line *line, void *context) {
  cunwind_mappings *mappings = context;
  if (mappings->count < CUNWIND_MAX_MAPPINGS) mappings->list[mappings->count++] = mapping_of(line);
  return true;
}

void cunwind_mappings_read(cunwind_mappings *mappings) {
  mappings->count = 0;
  mappings->read_at = cunwind_now();
  mappings->reads++;
  read_lines(NULL, 0, keep, mappings);
}

typedef struct path_search {
  cunwind_path_use *use;
  void *context;
} path_search;

static bool use_path(const maps_line *line, void *context) {
  static const char suffix[] = " (deleted)";
  const path_search *search = context;
  const size_t length = line->length, end = sizeof suffix - 1;
  bool is_deleted = length > end && memcmp(line->path + length - end, suffix, end) == 0;
  if (length == 0 || length == line->room || line->path[0] != '/' || is_deleted) return true;
  cunwind_mapping mapping = mapping_of(line);
  return search->use(&mapping, line->path, length, search->context);
}

void cunwind_mapped_paths(cunwind_mappings *mappings, char *path, size_t room, cunwind_path_use *use, void *context) {
  path_search search = {.use = use, .context = context};
  mappings->reads++;
  read_lines(path, room, use_path, &search);
}

static const cunwind_mapping *search(const cunwind_mappings *mappings, uint64_t address) {
  size_t first = 0, end = mappings->count;
  while (first < end) {
    size_t middle = first + (end - first) / 2;
    if (mappings->list[middle].high <= address) first = middle + 1;
    else end = middle;
  }
  return first < mappings->count && mappings->list[first].low <= address ? &mappings->list[first] : NULL;
}

const cunwind_mapping *cunwind_mapping_at(cunwind_mappings *mappings, uint64_t address) {
  uint64_t age = cunwind_now() - mappings->read_at;
  const cunwind_mapping *found = age > CUNWIND_MAP_AGE_NANOSECONDS ? NULL : search(mappings, address);
  if (found || age <= CUNWIND_MISSING_AGE_NANOSECONDS) return found;
  cunwind_mappings_read(mappings);
  return search(mappings, address);
}
