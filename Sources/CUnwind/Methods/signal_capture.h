// Capture by signal: the data that the handler and the caller share.

#ifndef CUNWIND_SIGNAL_CAPTURE_H
#define CUNWIND_SIGNAL_CAPTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Engine/stack_copy.h"
#include "Engine/task_context.h"
#include "Machine/registers.h"

/// The number of engines that can capture by signal at the same time.
#define CUNWIND_MAX_SIGNAL_SLOTS 16

/// The two low bits of a slot's `state`. The others count captures, so that a handler that is too late does nothing.
enum { CUNWIND_SLOT_IDLE = 0, CUNWIND_SLOT_ARMED = 1, CUNWIND_SLOT_COPYING = 2, CUNWIND_SLOT_DONE = 3 };
#define CUNWIND_SLOT_STATE_MASK 3u

typedef struct cunwind_signal_slot {
  uint32_t is_taken;  ///< An engine uses the slot.
  uint32_t state;     ///< Futex.
  uint32_t sent;      ///< Signals sent, and below, handlers begun. If they differ, a signal may be pending.
  uint32_t arrived;
  uint64_t signals;  ///< Those that the slot's engine has sent: bit n - 1 is signal n.
  cunwind_stack_bounds bounds;
  const cunwind_context_layout *context_layout;  ///< NULL: the handler reads no context.
  cunwind_context context;
  cunwind_stack_copy copy;
  cunwind_registers registers;
  uint64_t handler_nanoseconds;
  pid_t last_tid;  ///< The last captured thread, and below, signal and time: its handler may not have returned yet.
  int last_signal;
  uint64_t last_nanoseconds;
} cunwind_signal_slot;

#pragma GCC visibility push(hidden)

/// Takes a free slot with a buffer; NULL with errno on failure.
cunwind_signal_slot *cunwind_signal_slot_take(void);

/// Returns the slot. It keeps its buffer, so that a late handler never uses freed memory.
void cunwind_signal_slot_give_back(cunwind_signal_slot *slot);

/// Returns the value that the slot's signal carries for this capture.
uint64_t cunwind_signal_cookie(const cunwind_signal_slot *slot, uint32_t state);

/// Installs our handler, and keeps the previous action to chain to. False with errno: EBUSY if the app has replaced
/// ours.
bool cunwind_signal_handler_install(int signal_number);

/// Restores the previous action, if no slot uses our handler, it is still installed, and no signal of ours is pending.
void cunwind_signal_handler_remove(int signal_number);

/// Removes the handler and frees the slot, unless a signal may still arrive.
void cunwind_signal_slot_destroy(cunwind_engine *engine);

#pragma GCC visibility pop

#endif
