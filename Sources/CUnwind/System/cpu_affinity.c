// Keeps the helper on the watchdog's processor, and the watchdog off the monitored thread's.
//
// The helper starts on the watchdog's processor and stays there. The scheduler would place it on the processor with the
// least load. With two processors that was the monitored thread's own in 6 of 200 captures (perf sched, Linux 6.18):
// the helper preempted that thread, and at the next tick waited for the thread's whole slice, 2 to 4 ms. The watchdog's
// processor becomes free, because the watchdog waits for the helper. The helper is bound before its creation, because
// moving it later takes longer than the stop.
//
// The watchdog moves off the processor of a thread before it waits for that thread's turn. A thread that begins a turn
// after a rest wakes the watchdog on its own processor, and the watchdog's timer then fires there, too. The scheduler
// should choose an idle processor, but in a virtual machine it did not choose the other one (a halted one may count as
// busy: available_idle_cpu, vcpu_is_preempted). A thread that wakes with a short slice runs at once, unless the running
// thread has less than that left of its slice: an eighth of the time, with ticks of 4 ms. Then it waits for the next
// tick (do_preempt_short, kernel/sched/fair.c). Of 200 stalls after a rest, a tenth had a first sample that was 2.6 to
// 3.2 ms late (perf sched).

#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "Engine/engine.h"
#include "System/raw_system_call.h"

// Returns the size of the kernel's own set; EINVAL: it is larger than ours.
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
  // The process may no longer use any of them (cpuset(7)): allow all that it has.
  memset(before->words, 0xff, sizeof before->words);
  allow(before->words, before->bytes);
}

bool cunwind_engine_leave_processor(cunwind_engine *engine, int processor) {
  // The probe of stops has set `may_be_placed`, so that no child is needed for that here.
  if (!engine->helper.may_be_placed || processor < 0 || processor >= CUNWIND_MAX_PROCESSORS) return false;
  if (sched_getcpu() != processor) return false;
  cunwind_processors before = {.bytes = 0};
  long bytes = read_allowed(&before);
  if (bytes <= 0) return false;
  cunwind_processors others = before;
  others.words[processor / 64] &= ~(1ull << (processor % 64));
  // EINVAL: the thread may run on no other processor.
  if (!allow(others.words, bytes)) return false;
  before.bytes = bytes;
  cunwind_processor_roam(&before);
  return true;
}
