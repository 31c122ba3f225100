// Capture by signal: what the handler and the caller share.

#ifndef CUNWIND_SIGNAL_CAPTURE_H
#define CUNWIND_SIGNAL_CAPTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Engine/stack_copy.h"
#include "Machine/registers.h"

/// Engines that can capture by signal at the same time.
#define CUNWIND_MAX_SIGNAL_SLOTS 16

/// The two low bits of a slot's `state`; the others count captures, so that a handler that comes late finds another
/// number there than its own and does nothing.
enum { CUNWIND_SLOT_IDLE = 0, CUNWIND_SLOT_ARMED = 1, CUNWIND_SLOT_COPYING = 2, CUNWIND_SLOT_DONE = 3 };
#define CUNWIND_SLOT_STATE_MASK 3u

typedef struct cunwind_signal_slot {
  uint32_t is_taken;  ///< By an engine.
  uint32_t state;     ///< Futex.
  uint32_t sent;      ///< Signals sent, and signals whose handler has begun: a difference may still be on its way.
  uint32_t arrived;
  int signal_number;
  cunwind_stack_bounds bounds;
  cunwind_stack_copy copy;
  cunwind_registers registers;
  uint64_t handler_nanoseconds;
  pid_t last_tid;  ///< The thread that was captured last, and when: its handler may not have returned yet.
  uint64_t last_nanoseconds;
} cunwind_signal_slot;

#pragma GCC visibility push(hidden)

/// A free slot with a buffer, or NULL with errno.
cunwind_signal_slot *cunwind_signal_slot_take(int signal_number);

/// Gives it back. The buffer stays the slot's, so a late handler never meets freed memory.
void cunwind_signal_slot_give_back(cunwind_signal_slot *slot);

/// The value that the slot's signal carries for this capture.
uint64_t cunwind_signal_cookie(const cunwind_signal_slot *slot, uint32_t state);

/// Makes the handler ours, keeping the one that was there to chain to. False with errno: EBUSY when the app has
/// replaced ours since.
bool cunwind_signal_handler_install(int signal_number);

/// Puts the old one back when no slot uses ours any more, it is still ours, and no signal of ours is on its way.
void cunwind_signal_handler_remove(int signal_number);

#pragma GCC visibility pop

#endif
