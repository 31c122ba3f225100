// From registers and a copied stack to frames.

#ifndef CUNWIND_UNWIND_H
#define CUNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"
#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Memory/modules.h"

/// The most frames of one unwind, counting those beyond CUNWIND_MAX_FRAMES. The smallest frame has 16 bytes,
/// and so CUNWIND_MAX_STACK_BYTES hold no more than this.
#define CUNWIND_MAX_STEPS 65536u
/// Words that the call-site scan reads at most. libdispatch's largest frame without unwind information has about 80.
#define CUNWIND_SCAN_WORDS 512u

typedef struct cunwind_unwinder {
  const cunwind_modules *modules;
  cunwind_page_cache *pages;
  const cunwind_stack_copy *copy;  ///< Set before each unwind.
  cunwind_end failure;
  uint64_t missing;  ///< The address that could not be read, when that is the failure.
} cunwind_unwinder;

/// How one step outwards ended.
typedef enum cunwind_step {
  CUNWIND_STEP_OK,
  CUNWIND_STEP_OUTERMOST,         ///< This was the thread's first function.
  CUNWIND_STEP_NO_INFO,           ///< No unwind information covers the PC, or none that can be used.
  CUNWIND_STEP_UNKNOWN_REGISTER,  ///< It needs a register that is not known.
  CUNWIND_STEP_NO_MEMORY          ///< It needs memory that cannot be read; `failure` says why.
} cunwind_step;

#pragma GCC visibility push(hidden)

/// Unwinds the copy, from `start` outwards. Every field of `stack` is set. Bounded; never faults on any input.
void cunwind_unwind(cunwind_unwinder *unwinder, const cunwind_registers *start, cunwind_stack *stack);

/// Reads bytes of the copied stack, or of an image.
bool cunwind_read(cunwind_unwinder *unwinder, uint64_t address, void *to, size_t size);

// ---- One step, by its source ----------------------------------------------------------------------------------------
// `from` is a frame's registers, `*to` becomes its caller's. `is_exact`: the PC is no return address.

cunwind_step cunwind_step_by_cfi(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                 cunwind_registers *to);
cunwind_step cunwind_step_by_call_site(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to);
cunwind_step cunwind_step_by_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                           cunwind_registers *to);

/// The function around `pc` by the images' unwind tables. False: none is known.
bool cunwind_function_at(cunwind_unwinder *unwinder, uint64_t pc, uint64_t *start, uint64_t *end);

// ---- Per architecture ------------------------------------------------------------------------------------------------

/// Whether the instruction before `address` is a call, in code of an image. `*target`: the address that it calls, 0 when
/// that is decided at run time. `target` may be NULL.
bool cunwind_follows_call(cunwind_unwinder *unwinder, uint64_t address, uint64_t *target);

/// The function behind a linkage stub, if the call's target is one; else the target itself.
uint64_t cunwind_resolve_stub(cunwind_unwinder *unwinder, uint64_t target);

/// A saved return address without the bits that the hardware may have added.
uint64_t cunwind_strip(uint64_t address);

/// Whether `pc` is at the code that a signal handler returns to.
bool cunwind_is_signal_return(cunwind_unwinder *unwinder, uint64_t pc);

/// The registers that the signal interrupted, from the frame that the kernel made.
cunwind_step cunwind_step_out_of_signal(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                        cunwind_registers *to);

/// The frame pointer, computed from the prologue of the function around PC; CUNWIND_STEP_OK, or
/// CUNWIND_STEP_UNKNOWN_REGISTER where that is not certain.
cunwind_step cunwind_infer_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                         uint64_t *frame_pointer);

/// Where the Swift async function around `pc`, whose frame's CFA is `cfa`, keeps its context (`*slot`, with the saved frame
/// pointer in the next word) and its return address. False: it is no async function, or has not made its frame yet.
bool cunwind_async_frame_slots(cunwind_unwinder *unwinder, uint64_t pc, bool is_exact, uint64_t cfa, uint64_t *slot,
                               uint64_t *return_slot);

#pragma GCC visibility pop

#endif
