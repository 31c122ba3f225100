// The processors of the watchdog and of its helper.

#ifndef CUNWIND_SCHEDULING_H
#define CUNWIND_SCHEDULING_H

#include <stdint.h>

/// The most processors that a kernel supports (CONFIG_NR_CPUS of x86-64).
#define CUNWIND_MAX_PROCESSORS 8192

/// The processors that a thread may be on.
typedef struct cunwind_processors {
  uint64_t words[CUNWIND_MAX_PROCESSORS / 64];
  long bytes;  ///< The used bytes of `words`. 0: the affinity was not changed.
} cunwind_processors;

#pragma GCC visibility push(hidden)

/// Binds the calling thread, and children that it creates, to its current processor; takes 2 us. `*before` is for
/// cunwind_processor_roam(), which ends that for the thread, not for its children. Async-signal-safe: yes.
void cunwind_processor_stay(cunwind_processors *before);
void cunwind_processor_roam(cunwind_processors *before);

#pragma GCC visibility pop

#endif
