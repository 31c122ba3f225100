// How much more memory the process may have, by its limits. Maps nothing to find that out: the program's own allocations
// could fail meanwhile.

#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "CLinux.h"

/// The value of vm.overcommit_memory with which all processes share a limit on what they may have (proc_sys_vm(5)).
#define STRICT '2'

// Reads a file's beginning as a string. False: it cannot be read, or is empty.
static bool read_text(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? -1 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[got > 0 ? got : 0] = 0;
  return got > 0;
}

// The bytes that count for RLIMIT_AS and for RLIMIT_DATA: fields 1 and 6 of proc_pid_statm(5), in pages. The second one
// has the stack, too, which does not count. False: they are not known.
static bool read_sizes(uint64_t *addresses, uint64_t *data) {
  char text[256];
  unsigned long all, own;
  if (!read_text("/proc/self/statm", text, sizeof text) || sscanf(text, "%lu %*u %*u %*u %*u %lu", &all, &own) != 2)
    return false;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  *addresses = all * page;
  *data = own * page;
  return true;
}

static uint64_t limit_of(__rlimit_resource_t resource) {
  struct rlimit limit;
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

static bool fits(uint64_t limit, uint64_t used, uint64_t bytes) { return used <= limit && limit - used >= bytes; }

// proc_meminfo(5), in KiB. True where it is not known.
static bool fits_commitment(uint64_t bytes) {
  char text[4096];
  if (!read_text("/proc/sys/vm/overcommit_memory", text, sizeof text) || text[0] != STRICT ||
      !read_text("/proc/meminfo", text, sizeof text))
    return true;
  const char *limit = strstr(text, "CommitLimit:"), *used = strstr(text, "Committed_AS:");
  if (!limit || !used) return true;
  return fits(strtoull(limit + strlen("CommitLimit:"), NULL, 10) << 10,
              strtoull(used + strlen("Committed_AS:"), NULL, 10) << 10, bytes);
}

// A line of /proc/self/status (proc_pid_status(5)) in bytes; 0: it is missing.
static uint64_t status_bytes(const char *status, const char *label) {
  const char *line = strstr(status, label);
  return line ? strtoull(line + strlen(label), NULL, 10) << 10 : 0;
}

// With mlockall(MCL_FUTURE) all new memory counts for RLIMIT_MEMLOCK. Which programs have called it is not shown: those that
// have locked half of their memory. One that is over the limit is privileged (CAP_IPC_LOCK). True where it is not known.
static bool fits_lock(uint64_t bytes) {
  char text[4096];
  uint64_t most = limit_of(RLIMIT_MEMLOCK);
  if (most == RLIM_INFINITY || !read_text("/proc/self/status", text, sizeof text)) return true;
  uint64_t locked = status_bytes(text, "\nVmLck:");
  return locked * 2 < status_bytes(text, "\nVmRSS:") || locked > most || fits(most, locked, bytes);
}

bool clinux_has_room(size_t bytes) {
  uint64_t addresses = 0, data = 0, most = limit_of(RLIMIT_AS), most_data = limit_of(RLIMIT_DATA);
  bool is_limited = most != RLIM_INFINITY || most_data != RLIM_INFINITY;
  if (is_limited && !read_sizes(&addresses, &data)) return false;
  return fits(most, addresses, bytes) && fits(most_data, data, bytes) && fits_lock(bytes) && fits_commitment(bytes);
}

bool clinux_is_short_of_addresses(size_t bytes) {
  uint64_t addresses = 0, data = 0, most = limit_of(RLIMIT_AS);
  if (most != RLIM_INFINITY) read_sizes(&addresses, &data);
  return !fits(most, addresses, bytes);
}

bool clinux_share_heap(void) { return mallopt(M_ARENA_MAX, 1) == 1; }
