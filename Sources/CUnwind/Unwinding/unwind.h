// From registers and a copied stack to frames.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CUnwind.h"
#include "Engine/stack_copy.h"
#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Memory/modules.h"

/// The most frames of one unwind, kept or not: the smallest has 16 bytes, CUNWIND_MAX_STACK_BYTES cannot hold more.
#define CUNWIND_MAX_STEPS 65536u
/// The most words that a call-site scan reads. libdispatch's largest frame without unwind information has about 80.
#define CUNWIND_SCAN_WORDS 512u

/// How much CPU time one unwind may take, in nanoseconds (50 ms). One of 70 frames takes 0.1 ms; damaged tables can lead through
/// thousands of frames, each with a long entry. The tests in an emulated machine set another bound.
#if !defined(CUNWIND_UNWIND_NANOSECONDS)
#define CUNWIND_UNWIND_NANOSECONDS 50000000ull
#endif
/// The PCs whose rules are remembered as accepted.
#define CUNWIND_KNOWN_PCS 1024u
#define CUNWIND_ONLY_CALLS 16u

/// The most bytes of an unwinder's name, and of the reason why it is not libunwind.
#define CUNWIND_UNWINDER_NAME_BYTES 32
#define CUNWIND_UNWINDER_REASON_BYTES 256

/// A loaded libunwind. Our own stepper guards it, because it may crash on damaged tables: a PC goes to it only if our
/// parser has accepted the function's entry and the rules at the PC. Ours stands in where it is missing or fails.
typedef struct cunwind_library {
  char name[CUNWIND_UNWINDER_NAME_BYTES];
} cunwind_library;

#if defined(__x86_64__)
#define CUNWIND_LIBRARY "libunwind-x86_64.so.8"
enum { CUNWIND_KEPT_COUNT = 6 };
#else
#define CUNWIND_LIBRARY "libunwind-aarch64.so.8"
enum { CUNWIND_KEPT_COUNT = 11 };
#endif

typedef enum cunwind_stepper {
  CUNWIND_PC_REFUSED,    ///< None: no table covers it, or its entry or rules are damaged.
  CUNWIND_PC_OUTERMOST,  ///< None: it is in a thread's first function.
  CUNWIND_PC_OWN,        ///< Our own stepper: the rules are of a kind that others may not survive.
  CUNWIND_PC_ANY         ///< Both.
} cunwind_stepper;

typedef struct cunwind_known_pc {
  uint64_t pc;  ///< 0: the place is free.
  cunwind_stepper stepper;
} cunwind_known_pc;

/// What the search for a function's calls has found.
typedef struct cunwind_only_call {
  uint64_t function;  ///< Its first instruction; 0: the place is free.
  uint64_t link;      ///< The address after its only call; 0: there is none, or more than one.
} cunwind_only_call;

typedef struct cunwind_unwinder {
  const cunwind_modules *modules;
  cunwind_page_cache *pages;
  const cunwind_stack_copy *copy;  ///< Set before each unwind.
  cunwind_end failure;
  uint64_t missing;  ///< The address that could not be read, if that is the failure.
  // Steps by call frame information.
  cunwind_library *library;  ///< NULL: only our own stepper.
  uint64_t begin;            ///< The time at which the unwind began, in monotonic nanoseconds.
  uint64_t begin_cpu;        ///< The thread's CPU time then.
  uint64_t stood_in;         ///< The steps that libunwind failed to make, and ours made.
  cunwind_known_pc known_pcs[CUNWIND_KNOWN_PCS];
  cunwind_only_call only_calls[CUNWIND_ONLY_CALLS];  ///< On aarch64 only.
} cunwind_unwinder;

typedef enum cunwind_step {
  CUNWIND_STEP_OK,
  CUNWIND_STEP_OUTERMOST,         ///< The frame is the thread's first function.
  CUNWIND_STEP_NO_INFO,           ///< No usable unwind information covers the PC.
  CUNWIND_STEP_UNKNOWN_REGISTER,  ///< The step needs a register that is not known.
  CUNWIND_STEP_NO_MEMORY          ///< The step needs memory that cannot be read; `failure` says why.
} cunwind_step;

#pragma GCC visibility push(hidden)

/// Unwinds the copy from `start` outwards. Sets every field of `stack`. Bounded; never faults, for any input.
void cunwind_unwind(cunwind_unwinder *unwinder, const cunwind_registers *start, cunwind_stack *stack);

/// Reads bytes of the copied stack, or of an image.
bool cunwind_read(cunwind_unwinder *unwinder, uint64_t address, void *to, size_t size);

// ---- One step, by its source ----------------------------------------------------------------------------------------
// `from` has a frame's registers; `*to` gets its caller's. `is_exact`: the PC is not a return address.

/// By the stepper that may step from the PC: libunwind if it is there, else or if it fails our own.
cunwind_step cunwind_step_by_cfi(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                 cunwind_registers *to);
cunwind_step cunwind_step_by_own_rules(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to);
cunwind_step cunwind_step_by_library(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                     cunwind_registers *to);
/// `*is_proven`: no other word can be the return address.
cunwind_step cunwind_step_by_call_site(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to, bool *is_proven);
cunwind_step cunwind_step_by_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                           cunwind_registers *to);

/// Returns which stepper may step from `pc`, which is inside the frame's call or instruction.
cunwind_stepper cunwind_stepper_for(cunwind_unwinder *unwinder, uint64_t pc);

bool cunwind_registers_are_same(const cunwind_registers *left, const cunwind_registers *right);

/// The registers that a callee preserves, beside SP.
extern const uint8_t cunwind_kept_registers[CUNWIND_KEPT_COUNT];

/// Loads libunwind, the file `library`. NULL: `reason` (CUNWIND_UNWINDER_REASON_BYTES) says why. The library stays loaded
/// for good. Takes the dynamic linker's lock, so no thread may be stopped.
cunwind_library *cunwind_library_create(const char *library, char *reason);
void cunwind_library_destroy(cunwind_library *library);

/// Forget what they know of the images.
void cunwind_library_flush(cunwind_library *library);
void cunwind_unwinder_flush(cunwind_unwinder *unwinder);

/// Finds the function that contains `pc` in the images' unwind tables. False: there is none.
bool cunwind_function_at(cunwind_unwinder *unwinder, uint64_t pc, uint64_t *start, uint64_t *end);

// ---- Per architecture -----------------------------------------------------------------------------------------------

/// Returns whether the instruction before `address` is a call in the code of an image. `*target`: the called address; 0
/// if it is known only at run time. `target` may be NULL.
bool cunwind_follows_call(cunwind_unwinder *unwinder, uint64_t address, uint64_t *target);

/// The same for memory that is in no image, such as code that was made at run time.
bool cunwind_follows_call_outside(const cunwind_unwinder *unwinder, uint64_t address);

/// Returns the function that a linkage stub or a jump at `target` leads to, if there is one; else the target itself.
uint64_t cunwind_resolve_stub(cunwind_unwinder *unwinder, uint64_t target);

/// Returns a saved return address without the bits that the hardware may have added.
uint64_t cunwind_strip(uint64_t address);

/// Returns whether `pc` is at the code to which a signal handler returns.
bool cunwind_is_signal_return(cunwind_unwinder *unwinder, uint64_t pc);

/// Reads the interrupted registers from the signal frame that the kernel wrote.
cunwind_step cunwind_step_out_of_signal(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                        cunwind_registers *to);

/// Computes the frame pointer from the prologue of the function that contains PC. Returns CUNWIND_STEP_OK, or
/// CUNWIND_STEP_UNKNOWN_REGISTER if the result is not certain.
cunwind_step cunwind_infer_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                         uint64_t *frame_pointer);

#if defined(__x86_64__)
/// Follows the function that begins at `start` to `pc`. Stores how far its return address is above SP, and above the saved
/// frame pointer (0: not saved). False: not certain.
bool cunwind_follow_from_entry(cunwind_unwinder *unwinder, uint64_t start, uint64_t pc, uint64_t *bytes,
                               uint64_t *saved);

/// Steps out of a function by its own code, from PC to its return. Returns CUNWIND_STEP_OK or CUNWIND_STEP_NO_INFO.
cunwind_step cunwind_step_by_code(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                  cunwind_registers *to);
#endif

#if defined(__aarch64__)
bool cunwind_is_call(uint32_t code);

/// Finds the return address of a function that has saved nothing, with an exact PC, without LR. False: not certain.
bool cunwind_infer_link(cunwind_unwinder *unwinder, const cunwind_registers *from, uint64_t *link);
#endif

/// Finds the context (`*slot`, with the saved frame pointer in the next word) and the return address in the frame of
/// the Swift async function that contains `pc`. The frame's CFA is `cfa`. False: not async, or not set up yet.
bool cunwind_async_frame_slots(cunwind_unwinder *unwinder, uint64_t pc, bool is_exact, uint64_t cfa, uint64_t *slot,
                               uint64_t *return_slot);

/// Evaluates the expression at `start`...`end` of an image with a frame's registers. If `first` is not NULL, the
/// expression's stack begins with it. Returns CUNWIND_STEP_OK with `*value`, CUNWIND_STEP_NO_INFO (damaged, or unknown
/// operations), CUNWIND_STEP_UNKNOWN_REGISTER or CUNWIND_STEP_NO_MEMORY. Bounded; never faults.
cunwind_step cunwind_evaluate(cunwind_unwinder *unwinder, const cunwind_registers *registers, const uint64_t *first,
                              uint64_t start, uint64_t end, uint64_t *value);

#pragma GCC visibility pop
