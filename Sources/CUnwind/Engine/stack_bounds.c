// The end of a stack, from /proc/self/maps. pthread_getattr_np(3) is not safe for a thread that may end meanwhile.

#define _GNU_SOURCE
#include <fcntl.h>

#include "Engine/stack_copy.h"
#include "System/raw_system_call.h"

typedef struct maps_line {
  uint64_t low, high;
  int field;  // 0: low, 1: high, 2: permissions, 3: the rest.
  bool is_writable;
} maps_line;

static int hexadecimal(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

// "7f5c8c000000-7f5c8c021000 rw-p 00000000 00:00 0 ...": proc_pid_maps(5).
static void take_letter(maps_line *line, char letter) {
  if (line->field == 0 && letter == '-') line->field = 1;
  else if (line->field < 3 && letter == ' ') line->field++;
  else if (line->field == 0) line->low = line->low * 16 + (uint64_t)hexadecimal(letter);
  else if (line->field == 1) line->high = line->high * 16 + (uint64_t)hexadecimal(letter);
  else if (line->field == 2 && letter == 'w') line->is_writable = true;
}

bool cunwind_stack_bounds_find(cunwind_stack_bounds *bounds, uint64_t address) {
  long file = cunwind_raw(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return false;
  char text[4096];
  maps_line line = {0, 0, 0, false};
  bool found = false, past = false;
  long got;
  while (!found && !past && (got = cunwind_raw(SYS_read, file, (long)text, sizeof text, 0, 0, 0)) > 0) {
    for (long index = 0; index < got && !found && !past; index++) {
      if (text[index] != '\n') {
        take_letter(&line, text[index]);
        continue;
      }
      past = line.low > address;
      found = !past && address < line.high && line.is_writable;
      if (found) *bounds = (cunwind_stack_bounds){.low = line.low, .high = line.high};
      line = (maps_line){0, 0, 0, false};
    }
  }
  cunwind_raw(SYS_close, file, 0, 0, 0, 0, 0);
  return found;
}
