// The engine's data, and the functions that its parts share.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"
#include "Engine/task_context.h"
#include "Engine/thread_files.h"
#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Memory/modules.h"
#include "Methods/stop_helper.h"
#include "Unwinding/unwind.h"

struct cunwind_signal_slot;

struct cunwind_engine {
  uint32_t process;  ///< The number of the process that created the engine. A child of fork(2) must not use its copy.
  int signal_number;
  int harmless_signal_number;  ///< For threads that do not block it; 0: none.
  cunwind_modules modules;
  cunwind_page_cache pages;
  cunwind_unwinder unwinder;
  char unwinder_reason[CUNWIND_UNWINDER_REASON_BYTES];  ///< Why it is not libunwind; empty if it is.
  cunwind_helper_memory helper;                         ///< Its copy is that of all methods but the signal.
  cunwind_async_walk walk;
  cunwind_context context;  ///< Of the last capture.
  cunwind_pending_stop pending[CUNWIND_MAX_PENDING_STOPS];
  cunwind_helper_memory spare;              ///< Without a request: none is prepared.
  struct cunwind_signal_slot *signal_slot;  ///< NULL until the first capture by signal.
};

#pragma GCC visibility push(hidden)

/// Returns the layout of contexts, and learns the thread's thread pointer. NULL: the context cannot be read; the engine's
/// context says why. Async-signal-safe: yes.
const cunwind_context_layout *cunwind_context_prepare(cunwind_engine *engine, cunwind_thread *thread);

/// A method that copies a thread once: sets `*copy` and `*registers`, and adds its cost to `info`.
typedef cunwind_status cunwind_copying(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy **copy,
                                       cunwind_registers *registers, cunwind_capture_info *info);

/// Updates the engine's list of images. Async-signal-safe: yes.
void cunwind_update_images(cunwind_engine *engine);

/// Updates the images, unwinds the copy, and learns from it the end of the thread's stack. False, only if `may_retake`: the
/// copy ended too early. The thread's bounds now have the end of the stack: capture again.
bool cunwind_finish(cunwind_engine *engine, cunwind_thread *thread, const cunwind_stack_copy *copy,
                    const cunwind_registers *registers, cunwind_stack *stack, bool may_retake);

/// Removes the handler of signals and frees the engine's slot, unless a signal may still arrive.
void cunwind_signal_slot_destroy(cunwind_engine *engine);

/// Empties a stack. Async-signal-safe: yes.
void cunwind_clear(cunwind_stack *stack);

/// Captures a thread's stack by one way of copying it, and unwinds the copy.
cunwind_status cunwind_capture_by(cunwind_copying *copy_once, cunwind_engine *engine, cunwind_thread *thread,
                                  cunwind_stack *stack, cunwind_capture_info *info);

#pragma GCC visibility pop
