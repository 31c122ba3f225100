// Which processor the helper is on, and which one the watchdog is not on.
//
// The helper begins on the watchdog's, and stays there. A new process is put where the scheduler finds the least to do, and with two processors that was the monitored thread's own
// in 6 of 200 captures (perf sched, Linux 6.18): there it began in that thread's place, and at the next tick waited for
// the thread's whole slice, 2 to 4 ms. The watchdog's processor is about to be free, because the watchdog waits for the
// helper. Bound before it is made: to be moved later takes longer than to be stopped does.
//
// The watchdog leaves the processor of a thread whose turn it is about to wait for. A thread that begins a turn after a rest
// wakes the watchdog on its own processor, and there the watchdog's timer goes off too. The scheduler should look for an idle
// one then, but did not take the other one of a virtual machine (one that has halted may count as busy: available_idle_cpu,
// vcpu_is_preempted). A thread that wakes with a short slice runs at once, unless less than that is left of the other's
// slice: an eighth of all moments, with ticks of 4 ms, and then it waits for the next tick (do_preempt_short,
// kernel/sched/fair.c). Of 200 stalls, each after a rest, the first samples of a tenth came 2.6 to 3.2 ms late (perf sched).

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

bool cunwind_engine_leave_processor(cunwind_engine *engine, int processor) {
  // The probe of stops has found out, so that no child has to be made for it here.
  if (!engine->helper.may_be_placed || processor < 0 || processor >= CUNWIND_MAX_PROCESSORS) return false;
  if (sched_getcpu() != processor) return false;
  uint64_t words[CUNWIND_MAX_PROCESSORS / 64] = {0}, here = 1ull << (processor % 64);
  long bytes = cunwind_raw(SYS_sched_getaffinity, 0, sizeof words, (long)words, 0, 0, 0);
  if (bytes <= 0) return false;
  words[processor / 64] &= ~here;
  // EINVAL: there is no other that it may be on.
  if (cunwind_raw(SYS_sched_setaffinity, 0, bytes, (long)words, 0, 0, 0) != 0) return false;
  words[processor / 64] |= here;
  cunwind_raw(SYS_sched_setaffinity, 0, bytes, (long)words, 0, 0, 0);
  return true;
}
