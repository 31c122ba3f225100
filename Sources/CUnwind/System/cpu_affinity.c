// Keeps the helper on the watchdog's processor, and the watchdog off the monitored thread's.
//
// The helper begins on the watchdog's, and stays there. A new process is put where the scheduler finds the least to do,
// and with two processors that was the monitored thread's own in 6 of 200 captures (perf sched, Linux 6.18): there it
// began in that thread's place, and at the next tick waited for the thread's whole slice, 2 to 4 ms. The watchdog's
// processor is about to be free, because the watchdog waits for the helper. Bound before it is made: to be moved later
// takes longer than to be stopped does.
//
// The watchdog leaves the processor of a thread whose turn it is about to wait for. A thread that begins a turn after a
// rest wakes the watchdog on its own processor, and there the watchdog's timer goes off too. The scheduler should look
// for an idle one then, but did not take the other one of a virtual machine (one that has halted may count as busy:
// available_idle_cpu, vcpu_is_preempted). A thread that wakes with a short slice runs at once, unless less than that is
// left of the other's slice: an eighth of all moments, with ticks of 4 ms, and then it waits for the next tick
// (do_preempt_short, kernel/sched/fair.c). Of 200 stalls, each after a rest, the first samples of a tenth came 2.6 to
// 3.2 ms late (perf sched).

#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

// What is returned is the size of the kernel's own set; EINVAL: it is larger than ours.
static long read_allowed(cunwind_processors *allowed) {
  return cunwind_raw(SYS_sched_getaffinity, 0, sizeof allowed->words, (long)allowed->words, 0, 0, 0);
}

static bool allow(const uint64_t *words, long bytes) {
  return cunwind_raw(SYS_sched_setaffinity, 0, bytes, (long)words, 0, 0, 0) == 0;
}

void cunwind_processor_stay(cunwind_processors *before) {
  before->bytes = 0;
  int processor = sched_getcpu();
  if (processor < 0 || processor >= CUNWIND_MAX_PROCESSORS) return;
  long bytes = read_allowed(before);
  if (bytes <= 0) return;
  uint64_t here[CUNWIND_MAX_PROCESSORS / 64] = {0};
  here[processor / 64] = 1ull << (processor % 64);
  if (allow(here, bytes)) before->bytes = bytes;
}

void cunwind_processor_roam(cunwind_processors *before) {
  if (before->bytes == 0 || allow(before->words, before->bytes)) return;
  // All of them were taken from the process meanwhile (cpuset(7)): then any that it has.
  memset(before->words, 0xff, sizeof before->words);
  allow(before->words, before->bytes);
}

bool cunwind_engine_leave_processor(cunwind_engine *engine, int processor) {
  // The probe of stops has found out, so that no child has to be made for it here.
  if (!engine->helper.may_be_placed || processor < 0 || processor >= CUNWIND_MAX_PROCESSORS) return false;
  if (sched_getcpu() != processor) return false;
  cunwind_processors before = {.bytes = 0};
  long bytes = read_allowed(&before);
  if (bytes <= 0) return false;
  cunwind_processors others = before;
  others.words[processor / 64] &= ~(1ull << (processor % 64));
  // EINVAL: there is no other that it may be on.
  if (!allow(others.words, bytes)) return false;
  before.bytes = bytes;
  cunwind_processor_roam(&before);
  return true;
}
