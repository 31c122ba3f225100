#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CLinux.h"

// A control page and one page of records (perf_event_open(2), "MMAP layout").
static size_t ring_size(void) { return 2 * (size_t)sysconf(_SC_PAGESIZE); }

bool clinux_watch_faults(pid_t thread, struct clinux_fault_watch *watch) {
  // Without `exclude_kernel` it would need CAP_PERFMON.
  struct perf_event_attr attributes = {.size = sizeof attributes,
                                       .type = PERF_TYPE_SOFTWARE,
                                       .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
                                       .sample_period = 1,
                                       .sample_type = PERF_SAMPLE_ADDR,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1};
  int descriptor = (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (descriptor < 0) return false;
  void *ring = mmap(NULL, ring_size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  // The mapping keeps the event (mmap(2)). A program that closes all descriptors would give the number to another file.
  close(descriptor);
  if (ring == MAP_FAILED) return false;
  watch->ring = ring;
  return true;
}

bool clinux_last_fault(struct clinux_fault_watch *watch, uint64_t *address) {
  struct perf_event_mmap_page *control = watch->ring;
  const size_t size = ring_size() / 2;
  const char *records = (const char *)watch->ring + size;
  uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = control->data_tail;
  bool found = false;
  while (head - tail >= sizeof(struct perf_event_header)) {
    struct perf_event_header header;
    // Records are multiples of eight bytes, as the header is: it never wraps around. What follows may.
    memcpy(&header, records + tail % size, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) break;
    if (header.type == PERF_RECORD_SAMPLE) {
      memcpy(address, records + (tail + sizeof header) % size, sizeof *address);
      found = true;
    }
    tail += header.size;
  }
  // Frees the room of the records that were read, and skips unknown ones.
  __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
  return found;
}

void clinux_unwatch_faults(struct clinux_fault_watch *watch) { munmap(watch->ring, ring_size()); }
