// What a thread is working on: the request, and the answer that is read while the thread is stopped or blocked.
//
// The Swift runtime keeps the current task of a thread in a thread-local word, and a task's values in a list. The app
// publishes a context in that list, in a thread-local word of StallWatch, or in the one of OpenTelemetry. Calibration
// finds and checks these places at the start (cunwind_publish_context_layout); nothing is read before.

#ifndef CUNWIND_TASK_CONTEXT_H
#define CUNWIND_TASK_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"

#pragma GCC visibility push(hidden)

/// Returns the published layout; NULL before the calibration. Async-signal-safe: yes.
const cunwind_context_layout *_Nullable cunwind_context_layout_now(void);

/// Forgets what was read: the context has no parts, and `status` says why. Async-signal-safe: yes.
void cunwind_context_clear(cunwind_context *_Nonnull context, cunwind_context_status status);

/// Reads the context of the thread with the thread pointer `pointer`. The thread must be stopped, or be the caller, or
/// the caller must prove afterwards that it was blocked. Makes at most 7 reads of at most 1 KiB, one per task-local
/// value and one per status record of the task, each bounded in number; 0.6 us each (measured). Async-signal-safe: yes,
/// and fit for the helper process.
void cunwind_context_take(cunwind_context *_Nonnull context, const cunwind_context_layout *_Nonnull layout,
                          uint64_t pointer);

/// Returns the thread pointer of the calling thread. Async-signal-safe: yes.
uint64_t cunwind_own_thread_pointer(void);

/// Returns the thread pointer of another thread of this process; 0 if it is not known. Costs one system call and the
/// thread nothing. Async-signal-safe: yes.
uint64_t cunwind_thread_pointer_of(const cunwind_context_layout *_Nonnull layout, pid_t tid);

/// Returns the address of a thread's TLS block of the module `module`; 0 if it has none. Async-signal-safe: yes.
uint64_t cunwind_thread_block(uint64_t pointer, uint64_t module);

#pragma GCC visibility pop

#endif
