// A copy of a thread's stack, and the end of that stack.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CUnwind.h"

/// The bytes kept for the outermost part of a stack that does not fit (256 KiB). The innermost part gets the rest.
#define CUNWIND_OUTER_BYTES (256u * 1024u)
/// The bytes copied of a stack whose end is not known yet (64 KiB). If it ends later, the capture starts again.
#define CUNWIND_FIRST_COPY_BYTES (64u * 1024u)

typedef struct cunwind_stack_copy {
  uint8_t *bytes;  ///< CUNWIND_MAX_STACK_BYTES: the inner piece, then the outer one.
  uint64_t low;    ///< Address of the inner piece.
  uint64_t length;
  uint64_t outer_low;     ///< Address of the outer piece.
  uint64_t outer_length;  ///< 0: the stack fits, and there is no outer piece.
  bool has_gap;           ///< The outer piece is the end of the same stack.
  uint64_t touched;       ///< So many bytes at the buffer's beginning have been touched.
} cunwind_stack_copy;

/// The known part of a thread's stack; addresses outside `low`...`high` are unknown.
typedef struct cunwind_stack_bounds {
  uint64_t low, high;
  /// The part of another stack that is copied as the outer piece: a signal handler's frames are on the stack of
  /// sigaltstack(2), those of its callers on the thread's own. Empty in a first capture.
  uint64_t other_low, other_high;
} cunwind_stack_bounds;

#pragma GCC visibility push(hidden)

/// Reserves the buffer without using memory, because most programs never stall. False with errno on failure.
bool cunwind_stack_copy_init(cunwind_stack_copy *copy);

/// Creates a copy with its buffer; NULL with errno on failure.
cunwind_stack_copy *cunwind_copy_create(void);
/// Frees a copy; does nothing for NULL.
void cunwind_copy_destroy(cunwind_stack_copy *copy);

/// Touches once each page of the unused buffer that a copy within `bounds` may take, so that no page fault happens while a
/// thread is held.
void cunwind_stack_copy_touch(cunwind_stack_copy *copy, const cunwind_stack_bounds *bounds);

/// Copies the stack from `stack_pointer` (less the red zone) up to its end in `bounds`. Leaves out unmapped parts.
/// Async-signal-safe: yes, and fit for the helper process.
void cunwind_copy_stack(cunwind_stack_copy *copy, uint64_t stack_pointer, const cunwind_stack_bounds *bounds);

/// Returns the end of the copy: the end of the stack if it is known, else CUNWIND_FIRST_COPY_BYTES further.
uint64_t cunwind_stack_end(const cunwind_stack_bounds *bounds, uint64_t stack_pointer);

/// Returns whether the copy includes all `size` bytes at `address`; if so, stores them.
bool cunwind_stack_copy_read(const cunwind_stack_copy *copy, uint64_t address, void *to, size_t size);

#pragma GCC visibility pop
