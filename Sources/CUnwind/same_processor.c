// Lets the helper begin on the processor that the watchdog is on, and stay there.
//
// A new process is put where the scheduler finds the least to do, and with two processors that was the monitored thread's own
// in 6 of 200 captures (perf sched, Linux 6.18): there it began in that thread's place, and at the next tick waited for
// the thread's whole slice, 2 to 4 ms. The watchdog's processor is about to be free, because the watchdog waits for the
// helper. Bound before it is made: to be moved later takes longer than to be stopped does.

#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "engine.h"
#include "raw_system_call.h"

void cunwind_processor_stay(cunwind_processors *before) {
  before->bytes = 0;
  int processor = sched_getcpu();
  if (processor < 0 || processor >= CUNWIND_MAX_PROCESSORS) return;
  // What is returned is the size of the kernel's own set; EINVAL: it is larger than ours.
  long bytes = cunwind_raw(SYS_sched_getaffinity, 0, sizeof before->words, (long)before->words, 0, 0, 0);
  if (bytes <= 0) return;
  uint64_t here[CUNWIND_MAX_PROCESSORS / 64] = {0};
  here[processor / 64] = 1ull << (processor % 64);
  if (cunwind_raw(SYS_sched_setaffinity, 0, bytes, (long)here, 0, 0, 0) == 0) before->bytes = bytes;
}

void cunwind_processor_roam(cunwind_processors *before) {
  if (before->bytes == 0) return;
  if (cunwind_raw(SYS_sched_setaffinity, 0, before->bytes, (long)before->words, 0, 0, 0) == 0) return;
  // All of them were taken from the process meanwhile (cpuset(7)): then any that it has.
  memset(before->words, 0xff, sizeof before->words);
  cunwind_raw(SYS_sched_setaffinity, 0, before->bytes, (long)before->words, 0, 0, 0);
}
