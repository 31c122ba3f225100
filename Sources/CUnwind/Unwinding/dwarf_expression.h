// Expressions in call frame information.

#ifndef CUNWIND_DWARF_EXPRESSION_H
#define CUNWIND_DWARF_EXPRESSION_H

#include <stdint.h>

#include "Unwinding/eh_frame.h"
#include "Unwinding/unwind.h"

#pragma GCC visibility push(hidden)

/// Evaluates the expression at `start`...`end` of an image with a frame's registers. If `first` is not NULL, the
/// expression's stack begins with it. Returns CUNWIND_STEP_OK with `*value`, CUNWIND_STEP_NO_INFO (damaged, or unknown
/// operations), CUNWIND_STEP_UNKNOWN_REGISTER or CUNWIND_STEP_NO_MEMORY. Bounded; never faults. Async-signal-safe: no.
cunwind_step cunwind_evaluate(cunwind_unwinder *unwinder, const cunwind_registers *registers, const uint64_t *first,
                              uint64_t start, uint64_t end, uint64_t *value);

#pragma GCC visibility pop

#endif
