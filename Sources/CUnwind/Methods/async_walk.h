// The callers of an async function: the request, and the answer that is read while the thread is held.
//
// An async function that awaits another one is not on the stack any more when that one runs. It is in its task's memory,
// as a context: { parent context, function to resume it with, ... } (swift/ABI/Task.h, AsyncContext). The running async
// function's frame holds its own context just below the saved frame pointer. Contexts are freed and used again as soon as
// the task goes on, so they are read only while its thread is held, and only if the frame is still the one that was seen.

#ifndef CUNWIND_ASYNC_WALK_H
#define CUNWIND_ASYNC_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "CUnwind.h"

/// Async functions on one stack whose callers are read. More than one needs an executor inside an async function.
#define CUNWIND_MAX_ASYNC_FRAMES 4u

/// An async function's frame, as it was in the copy.
typedef struct cunwind_async_frame {
  uint32_t frame;        ///< Index in the unwound stack.
  uint64_t slot;         ///< Where the frame holds its context; the saved frame pointer is the next word.
  uint64_t return_slot;  ///< Where it holds its return address.
  uint64_t words[2];     ///< What was in `slot` and in the word after it.
  uint64_t return_address;
} cunwind_async_frame;

/// One context that was read.
typedef struct cunwind_async_context {
  uint64_t parent;
  uint64_t resume;
} cunwind_async_context;

typedef struct cunwind_async_walk {
  // Asked.
  uint32_t frame_count;
  cunwind_async_frame frames[CUNWIND_MAX_ASYNC_FRAMES];
  // Read while the thread is held; of frame 0 first, then of frame 1...
  uint32_t counts[CUNWIND_MAX_ASYNC_FRAMES];  ///< Contexts of each frame's chain.
  bool has_moved;                             ///< The frames are not what they were: nothing was read.
  cunwind_async_context contexts[CUNWIND_MAX_ASYNC_CALLERS];
} cunwind_async_walk;

#pragma GCC visibility push(hidden)

/// Reads the chains, if the frames are still there on a stack that now ends at `stack_pointer`. The thread must be
/// stopped, or be proved to have been blocked afterwards. At most CUNWIND_MAX_ASYNC_CALLERS reads of 16 bytes, 0.6 us
/// each (measured). Async-signal-safe: yes, and fit for the helper process.
void cunwind_async_walk_take(cunwind_async_walk *walk, uint64_t stack_pointer);

#pragma GCC visibility pop

#endif
