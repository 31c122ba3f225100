// What a thread is working on: the request, and the answer that is read while the thread is stopped or blocked.
//
// The Swift runtime keeps the current task of a thread in a thread-local word, and a task's values in a list. The app
// publishes a context in that list, in a thread-local word of StallWatch, or in the one of OpenTelemetry. Calibration
// finds and checks these places at the start (cunwind_publish_context_layout); nothing is read before.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "CUnwind.h"

/// The most async functions on one stack whose callers are read; there are several only if one runs an executor.
#define CUNWIND_MAX_ASYNC_FRAMES 4u

/// The frame of an async function in the copy.
typedef struct cunwind_async_frame {
  uint32_t frame;        ///< Index in the unwound stack.
  uint64_t slot;         ///< The address of the context in the frame; the saved frame pointer is the next word.
  uint64_t return_slot;  ///< The address of the return address.
  uint64_t words[2];     ///< The word in `slot` and the one after it, as copied.
  uint64_t return_address;
} cunwind_async_frame;

typedef struct cunwind_async_context {
  uint64_t parent;
  uint64_t resume;
} cunwind_async_context;

typedef struct cunwind_async_walk {
  // The request.
  uint32_t frame_count;
  cunwind_async_frame frames[CUNWIND_MAX_ASYNC_FRAMES];
  // The answer, read while the thread cannot run: the contexts of frame 0, then of frame 1...
  uint32_t counts[CUNWIND_MAX_ASYNC_FRAMES];  ///< The number of contexts of each frame.
  bool has_moved;                             ///< The frames have changed: nothing was read.
  cunwind_async_context contexts[CUNWIND_MAX_ASYNC_CALLERS];
} cunwind_async_walk;

#pragma GCC visibility push(hidden)

/// Returns the published layout; NULL before the calibration. Async-signal-safe: yes.
const cunwind_context_layout *_Nullable cunwind_context_layout_now(void);

/// Forgets what was read: the context has no parts, and `status` says why. Async-signal-safe: yes.
void cunwind_context_clear(cunwind_context *_Nonnull context, cunwind_context_status status);

/// Reads the context of the thread with the thread pointer `pointer`. The thread must be stopped, or be the caller, or
/// the caller must prove afterwards that it was blocked. Makes at most 7 reads of at most 1 KiB, one per task-local
/// value and one per status record of the task, each bounded in number; 0.6 us each (measured). Async-signal-safe: yes,
/// and fit for the helper process.
void cunwind_read_context(cunwind_context *_Nonnull context, const cunwind_context_layout *_Nonnull layout,
                          uint64_t pointer);

/// Returns the thread pointer of the calling thread. Async-signal-safe: yes.
uint64_t cunwind_own_thread_pointer(void);

/// Returns the address of a thread's TLS block of the module `module`; 0 if it has none. Async-signal-safe: yes.
uint64_t cunwind_thread_block(uint64_t pointer, uint64_t module);

// ---- Async callers --------------------------------------------------------------------------------------------------
// The callers of an async function: the request, and the answer that is read while the thread is stopped or blocked.
//
// While an async function awaits another one, it is not on the stack. It is in its task's memory, as a context:
// { parent context, function that resumes it, ... } (swift/ABI/Task.h, AsyncContext). The frame of the running async
// function holds its own context just below the saved frame pointer. The task frees and reuses contexts as soon as it
// continues. So they are read only while the thread cannot run, and only if the frame is unchanged since the copy.

/// Reads the chains, if the frames are still on the stack, whose stack pointer is now `stack_pointer`. The thread must
/// be stopped, or the caller must prove afterwards that it was blocked. Makes at most CUNWIND_MAX_ASYNC_CALLERS reads
/// of 16 bytes, 0.6 us each (measured). Async-signal-safe: yes, and fit for the helper process.
void cunwind_read_async_chains(cunwind_async_walk *_Nonnull walk, uint64_t stack_pointer);

#pragma GCC visibility pop
