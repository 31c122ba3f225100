// How much memory the process may still take, and how the monitor takes less of it where that is little.

#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "CLinux.h"

bool clinux_has_room(size_t bytes) {
  // Maps, because RLIMIT_AS, RLIMIT_DATA and strict overcommitment all count mappings. Touches no page.
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

bool clinux_is_short_of_addresses(size_t bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file) {
    if (fscanf(file, "%lu", &pages) != 1) pages = 0;
    fclose(file);
  }
  uint64_t used = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
  return limit.rlim_cur < used || limit.rlim_cur - used < bytes;
}

bool clinux_share_heap(void) { return mallopt(M_ARENA_MAX, 1) == 1; }
