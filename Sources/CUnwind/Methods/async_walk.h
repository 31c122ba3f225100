// The callers of an async function: the request, and the answer that is read while the thread is stopped or blocked.
//
// While an async function awaits another one, it is not on the stack. It is in its task's memory, as a context:
// { parent context, function that resumes it, ... } (swift/ABI/Task.h, AsyncContext). The frame of the running async
// function holds its own context just below the saved frame pointer. The task frees and reuses contexts as soon as it
// continues. So they are read only while the thread cannot run, and only if the frame is unchanged since the copy.

#ifndef CUNWIND_ASYNC_WALK_H
#define CUNWIND_ASYNC_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "CUnwind.h"

/// The most async functions on one stack whose callers are read. A stack has several only if an async function runs an
/// executor.
#define CUNWIND_MAX_ASYNC_FRAMES 4u

/// The frame of an async function in the copy.
typedef struct cunwind_async_frame {
  uint32_t frame;        ///< Index in the unwound stack.
  uint64_t slot;         ///< The address of the context in the frame; the saved frame pointer is the next word.
  uint64_t return_slot;  ///< The address of the return address.
  uint64_t words[2];     ///< The word in `slot` and the one after it, as copied.
  uint64_t return_address;
} cunwind_async_frame;

/// A context that was read.
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

/// Reads the chains, if the frames are still on the stack, whose stack pointer is now `stack_pointer`. The thread must
/// be stopped, or the caller must prove afterwards that it was blocked. Makes at most CUNWIND_MAX_ASYNC_CALLERS reads
/// of 16 bytes, 0.6 us each (measured). Async-signal-safe: yes, and fit for the helper process.
void cunwind_async_walk_take(cunwind_async_walk *walk, uint64_t stack_pointer);

#pragma GCC visibility pop

#endif
