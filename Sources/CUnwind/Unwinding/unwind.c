// The walk along a copied stack, and its steps without call frame information.

#include "Unwinding/unwind.h"

#include <string.h>

#include "System/raw_system_call.h"
#include "Unwinding/cfi.h"

// Steps along the frame-pointer chain: [FP] is the caller's FP, [FP + 8] the return address, on both architectures. A
// caller may use the register for other values: the next such step finds out.
cunwind_step cunwind_step_by_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                           cunwind_registers *to) {
  if (!cunwind_is_known(from, CUNWIND_FP)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  uint64_t record = from->value[CUNWIND_FP], words[2];
  if (record % 8 != 0 || record < from->value[CUNWIND_SP]) return CUNWIND_STEP_NO_INFO;
  if (!cunwind_stack_copy_read(unwinder->copy, record, words, sizeof words)) return CUNWIND_STEP_NO_INFO;
  uint64_t pc = cunwind_strip(words[1]);
  if (!cunwind_follows_call(unwinder, pc, NULL)) return CUNWIND_STEP_NO_INFO;
  to->known = 0;
  cunwind_set_register(to, CUNWIND_PC, pc);
  cunwind_set_register(to, CUNWIND_SP, record + 16);
  cunwind_set_register(to, CUNWIND_FP, words[0]);
  return CUNWIND_STEP_OK;
}

// ---- Call sites -----------------------------------------------------------------------------------------------------
// Steps where no unwind information covers the PC, as in large parts of the Swift toolchain's libraries, and the code
// does not lead to a return. A function's return address is always the first word above its locals, and follows a call
// instruction. So this step takes the next such word outwards: a guess, because locals have words of dead frames. The
// frame pointer is saved below it, or unchanged.

// Sets the caller's registers, if only the function's return address is known. The function may have saved and changed
// every callee-saved register, but no compiler uses the frame pointer for other values in a function that does not save
// it. Assembly does: what cannot be a frame pointer is not known.
static void return_from(const cunwind_registers *from, cunwind_registers *to, uint64_t pc, uint64_t stack_pointer) {
  to->known = 0;
  cunwind_set_register(to, CUNWIND_PC, pc);
  cunwind_set_register(to, CUNWIND_SP, stack_pointer);
  uint64_t frame = from->value[CUNWIND_FP];
  if (cunwind_is_known(from, CUNWIND_FP) && frame % 8 == 0 && frame - stack_pointer < CUNWIND_MAX_STACK_BYTES) {
    cunwind_set_register(to, CUNWIND_FP, frame);
  }
}

/// The most bytes from a function's beginning to a PC in it, and the most jumps from a call to it.
#define LONGEST_FUNCTION 65536u
#define MAX_JUMPS 4

// Returns whether a direct call leads, through any stubs and jumps, to the function that contains `pc` and that no table
// covers: no function of a table begins at the target or behind it. Without a table it may be an earlier function.
static bool is_in_called_function(cunwind_unwinder *unwinder, uint64_t pc, uint64_t *target) {
  for (int jumps = 0; jumps < MAX_JUMPS; jumps++) *target = cunwind_resolve_stub(unwinder, *target);
  return *target != 0 && *target <= pc && pc - *target < LONGEST_FUNCTION &&
         cunwind_start_before(unwinder->modules, unwinder->pages, pc) < *target;
}

#if defined(__x86_64__)

// Returns the address of the return address in the record of the frame pointer; 0 if there is no record.
static uint64_t slot_of_record(cunwind_unwinder *unwinder, const cunwind_registers *from) {
  uint64_t record = from->value[CUNWIND_FP], word;
  if (!cunwind_is_known(from, CUNWIND_FP) || record % 8 != 0 || record < from->value[CUNWIND_SP]) return 0;
  if (!cunwind_stack_copy_read(unwinder->copy, record + 8, &word, sizeof word)) return 0;
  return cunwind_follows_call(unwinder, word, NULL) ? record + 8 : 0;
}

/// The longest stub of the procedure linkage table, in bytes: one with a retpoline.
#define STUB_BYTES 32u

cunwind_step cunwind_step_by_call_site(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to, bool *is_proven) {
  uint64_t pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1), record = slot_of_record(unwinder, from), target;
  uint64_t stack_pointer = (from->value[CUNWIND_SP] + 7) & ~7ull;
  bool may_be_outside = false;
  uint64_t distance, saved_below = 0;
  for (unsigned index = 0; index < CUNWIND_SCAN_WORDS; index++) {
    uint64_t slot = stack_pointer + index * 8ull, word, saved;
    if (!cunwind_stack_copy_read(unwinder->copy, slot, &word, sizeof word)) break;
    // The caller may be code that is in no image.
    if (!may_be_outside && slot < record) may_be_outside = cunwind_follows_call_outside(unwinder, word);
    if (!cunwind_follows_call(unwinder, word, &target)) continue;
    // PC may be in the stub that was called: lld writes no unwind information for stubs.
    bool is_stub = slot == from->value[CUNWIND_SP] && is_exact && target != 0 && pc - target < STUB_BYTES;
    // Locals may have the return address of an earlier call, so the called function has to have stored this one here.
    bool is_own = is_in_called_function(unwinder, pc, &target) &&
                  cunwind_follow_from_entry(unwinder, target, from->value[CUNWIND_PC], &distance, &saved_below) &&
                  distance == slot - from->value[CUNWIND_SP];
    *is_proven = is_stub || is_own || (!may_be_outside && slot == record);
    return_from(from, to, word, slot + 8);
    if (!is_own) saved_below = cunwind_is_known(from, CUNWIND_FP) && from->value[CUNWIND_FP] + 8 == slot ? 8 : 0;
    if (saved_below && cunwind_stack_copy_read(unwinder->copy, slot - saved_below, &saved, sizeof saved)) {
      cunwind_set_register(to, CUNWIND_FP, saved);
    }
    return CUNWIND_STEP_OK;
  }
  return CUNWIND_STEP_NO_INFO;
}

#else

// On aarch64 the return address is in LR until a function saves it in the frame record of FP (AAPCS64 6.4.6). It is not
// above the locals, so there is nothing to scan for. A direct call of the function proves either.
cunwind_step cunwind_step_by_call_site(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to, bool *is_proven) {
  uint64_t pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 4), link = 0, saved, target;
  if (is_exact && cunwind_is_known(from, CUNWIND_LR)) link = cunwind_strip(from->value[CUNWIND_LR]);
  // If the record contains LR, this function has saved it: the record is its own.
  bool is_saved =
      link == 0 || (cunwind_is_known(from, CUNWIND_FP) &&
                    cunwind_stack_copy_read(unwinder->copy, from->value[CUNWIND_FP] + 8, &saved, sizeof saved) &&
                    cunwind_strip(saved) == link);
  if (is_saved) {
    if (cunwind_step_by_frame_pointer(unwinder, from, to) != CUNWIND_STEP_OK) return CUNWIND_STEP_NO_INFO;
    link = to->value[CUNWIND_PC];
  } else if (!cunwind_follows_call(unwinder, link, NULL)) {
    return CUNWIND_STEP_NO_INFO;
  } else {
    return_from(from, to, link, from->value[CUNWIND_SP]);
  }
  *is_proven = cunwind_follows_call(unwinder, link, &target) && is_in_called_function(unwinder, pc, &target);
  return CUNWIND_STEP_OK;
}

#endif

// ---- The walk -------------------------------------------------------------------------------------------------------
// Walks from the innermost frame to the thread's first function: chooses each step, keeps frames, and ends in time.

/// The number of frames kept from each end of a stack that has too many.
#define HALF (CUNWIND_MAX_FRAMES / 2)
/// The steps from one look at the clock to the next. A step takes 2 ms at most, by damaged tables.
#define STEPS_PER_CHECK 4

// Stores the innermost frames in order, and the others in a ring in the rest of `frames`.
typedef struct recorder {
  cunwind_stack *stack;
  uint32_t ring_base;    // The first index of the ring.
  uint32_t ring_total;   // The number of frames stored in the ring so far.
  uint32_t inner_count;  // The number of frames before the ring.
  bool has_gap;
} recorder;

static void record(recorder *recorder, const cunwind_frame *frame) {
  cunwind_frame *frames = recorder->stack->frames;
  if (!recorder->has_gap && recorder->inner_count < HALF) {
    frames[recorder->inner_count++] = *frame;
    recorder->ring_base = recorder->inner_count;
    return;
  }
  uint32_t size = CUNWIND_MAX_FRAMES - recorder->ring_base;
  frames[recorder->ring_base + recorder->ring_total % size] = *frame;
  recorder->ring_total++;
}

// The frames of an earlier ring are lost with the ones in the gap.
static void begin_gap(recorder *recorder) {
  recorder->has_gap = true;
  recorder->ring_base = recorder->inner_count;
  recorder->ring_total = 0;
}

static void reverse(cunwind_frame *low, cunwind_frame *high) {
  while (low < high) {
    cunwind_frame moving = *low;
    *low++ = *--high;
    *high = moving;
  }
}

static void finish(recorder *recorder) {
  cunwind_stack *stack = recorder->stack;
  uint32_t size = CUNWIND_MAX_FRAMES - recorder->ring_base;
  uint32_t kept = recorder->ring_total < size ? recorder->ring_total : size;
  if (recorder->ring_total > size) {
    cunwind_frame *ring = stack->frames + recorder->ring_base;
    uint32_t oldest = recorder->ring_total % size;
    reverse(ring, ring + oldest);
    reverse(ring + oldest, ring + size);
    reverse(ring, ring + size);
  }
  stack->frame_count = recorder->ring_base + kept;
  stack->omitted_at = recorder->ring_total > kept || recorder->has_gap ? recorder->ring_base : 0;
}

// Steps out of a call through a bad pointer: nothing is mapped at PC, and the return address is where the call stored it.
static cunwind_step step_back_from_bad_call(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                            cunwind_registers *to) {
  uint8_t probe;
  if (cunwind_guarded_read_all(from->value[CUNWIND_PC], &probe, sizeof probe)) return CUNWIND_STEP_NO_INFO;
  *to = *from;
#if defined(__x86_64__)
  uint64_t word;
  if (!cunwind_read(unwinder, from->value[CUNWIND_SP], &word, sizeof word)) return CUNWIND_STEP_NO_MEMORY;
  cunwind_set_register(to, CUNWIND_SP, from->value[CUNWIND_SP] + 8);
#else
  uint64_t word = cunwind_is_known(from, CUNWIND_LR) ? cunwind_strip(from->value[CUNWIND_LR]) : 0;
#endif
  cunwind_set_register(to, CUNWIND_PC, word);
  return cunwind_follows_call(unwinder, word, NULL) ? CUNWIND_STEP_OK : CUNWIND_STEP_NO_INFO;
}

static cunwind_step step_by_cfi(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                cunwind_registers *to) {
  cunwind_step step = cunwind_step_by_cfi(unwinder, from, is_exact, to);
  if (step != CUNWIND_STEP_UNKNOWN_REGISTER) return step;
  cunwind_registers completed = *from;
  uint64_t value;
  if (!cunwind_is_known(from, CUNWIND_FP) &&
      cunwind_infer_frame_pointer(unwinder, from, is_exact, &value) == CUNWIND_STEP_OK) {
    cunwind_set_register(&completed, CUNWIND_FP, value);
#if defined(__aarch64__)
  } else if (is_exact && !cunwind_is_known(from, CUNWIND_LR) && cunwind_infer_link(unwinder, from, &value)) {
    cunwind_set_register(&completed, CUNWIND_LR, value);
#endif
  } else {
    return step;
  }
  return cunwind_step_by_cfi(unwinder, &completed, is_exact, to);
}

// Makes one step by the most reliable way that works, and stores it in `*source`.
static cunwind_step step_outwards(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                  cunwind_registers *to, uint8_t *source) {
  bool is_known = cunwind_module_of_code(unwinder->modules, from->value[CUNWIND_PC] - (is_exact ? 0 : 1));
  *source = CUNWIND_FRAME_CFI;
  cunwind_step step =
      is_known ? step_by_cfi(unwinder, from, is_exact, to) : step_back_from_bad_call(unwinder, from, to);
  if (step == CUNWIND_STEP_OK || (is_known && step != CUNWIND_STEP_NO_INFO)) return step;
  *source = CUNWIND_FRAME_CODE;
#if defined(__x86_64__)
  if (cunwind_step_by_code(unwinder, from, is_exact, to) == CUNWIND_STEP_OK) return CUNWIND_STEP_OK;
#endif
  bool is_proven = false;
  if (is_known && cunwind_step_by_call_site(unwinder, from, is_exact, to, &is_proven) == CUNWIND_STEP_OK) {
    if (!is_proven) *source = CUNWIND_FRAME_CALL_SITE_SCAN;
    return CUNWIND_STEP_OK;
  }
  *source = CUNWIND_FRAME_POINTER;
  return cunwind_step_by_frame_pointer(unwinder, from, to);
}

static cunwind_end find_end(const cunwind_unwinder *unwinder, cunwind_step step) {
  if (step == CUNWIND_STEP_OUTERMOST) return CUNWIND_END_COMPLETE;
  if (step == CUNWIND_STEP_NO_MEMORY) return unwinder->failure;
  return CUNWIND_END_NO_UNWIND_INFO;
}

// Time without a CPU does not count: on a busy machine a sound stack would be cut.
static bool takes_too_long(const cunwind_unwinder *unwinder) {
  return cunwind_now() - unwinder->begin > CUNWIND_UNWIND_NANOSECONDS &&
         cunwind_cpu_time() - unwinder->begin_cpu > CUNWIND_UNWIND_NANOSECONDS;
}

// What a walk has crossed so far.
typedef struct crossed {
  bool is_guess;      // The next frame, and all outward of it, may not be on the stack.
  bool unknown_code;  // Code that is in no image.
} crossed;

static cunwind_end walk(cunwind_unwinder *unwinder, cunwind_registers *registers, bool is_exact, uint8_t source,
                        crossed *crossed, recorder *recorder) {
  for (unsigned steps = 0; steps < CUNWIND_MAX_STEPS; steps++) {
    uint64_t pc = registers->value[CUNWIND_PC], stack_pointer = registers->value[CUNWIND_SP];
    bool is_signal = cunwind_is_signal_return(unwinder, pc);
    crossed->is_guess |= source == CUNWIND_FRAME_CALL_SITE_SCAN || source == CUNWIND_FRAME_POINTER;
    cunwind_frame frame = {.address = pc,
                           .stack_pointer = stack_pointer,
                           .is_exact = is_exact,
                           .is_signal_frame = is_signal,
                           .source = source,
                           .is_uncertain = crossed->is_guess};
    record(recorder, &frame);
    if (steps % STEPS_PER_CHECK == 0 && takes_too_long(unwinder)) return CUNWIND_END_TOO_LONG;
    cunwind_registers caller;
    cunwind_step step;
    if (is_signal) {
      source = CUNWIND_FRAME_CFI;
      step = cunwind_step_out_of_signal(unwinder, registers, &caller);
    } else {
      step = step_outwards(unwinder, registers, is_exact, &caller, &source);
      bool is_unknown = source != CUNWIND_FRAME_CFI && !cunwind_module_of_code(unwinder->modules, pc - !is_exact);
      crossed->unknown_code |= is_unknown;
      crossed->is_guess |= is_unknown;
    }
    if (step != CUNWIND_STEP_OK) return find_end(unwinder, step);
    // Only a signal may lead to another stack, because a handler may have its own. A function with nothing on the stack
    // has its caller's SP: any leaf on aarch64; on x86-64 glibc's vfork, which pops its return address.
    uint64_t next = caller.value[CUNWIND_SP], next_pc = caller.value[CUNWIND_PC];
    if (!is_signal && (next < stack_pointer || (next == stack_pointer && !is_exact))) return CUNWIND_END_LOOP;
    // A signal may have interrupted a jump to an invalid address.
    if (!is_signal && !cunwind_module_of_code(unwinder->modules, next_pc - 1) &&
        !cunwind_follows_call_outside(unwinder, next_pc))
      return CUNWIND_END_BAD_CODE_ADDRESS;
    is_exact = is_signal;
    *registers = caller;
  }
  return CUNWIND_END_TOO_DEEP;
}

// Call frame information cannot cross a gap in the copy. The walk continues at the first frame record after the gap
// with a chain of LINKS valid records: in code with frame pointers, like Swift's, that is a frame of the thread.
static bool find_frame_beyond_gap(cunwind_unwinder *unwinder, cunwind_registers *found) {
  enum { LINKS = 4 };
  const cunwind_stack_copy *copy = unwinder->copy;
  for (uint64_t record = (copy->outer_low + 15) & ~15ull; record < copy->outer_low + copy->outer_length; record += 16) {
    cunwind_registers first, next;
    memset(&first, 0, sizeof first);
    cunwind_set_register(&first, CUNWIND_SP, record);
    cunwind_set_register(&first, CUNWIND_FP, record);
    if (cunwind_step_by_frame_pointer(unwinder, &first, found) != CUNWIND_STEP_OK) continue;
    int links = 1;
    for (first = *found; links < LINKS; links++, first = next) {
      if (cunwind_step_by_frame_pointer(unwinder, &first, &next) != CUNWIND_STEP_OK) break;
    }
    if (links == LINKS) return true;
  }
  return false;
}

void cunwind_unwind(cunwind_unwinder *unwinder, const cunwind_registers *start, cunwind_stack *stack) {
  recorder recorder = {.stack = stack};
  cunwind_registers registers = *start;
  unwinder->begin = cunwind_now();
  unwinder->begin_cpu = cunwind_cpu_time();
  crossed crossed = {false, false};
  cunwind_end end = walk(unwinder, &registers, true, CUNWIND_FRAME_INITIAL, &crossed, &recorder);
  if (end == CUNWIND_END_NOT_IN_COPY && unwinder->copy->has_gap && find_frame_beyond_gap(unwinder, &registers)) {
    begin_gap(&recorder);
    end = walk(unwinder, &registers, false, CUNWIND_FRAME_POINTER, &crossed, &recorder);
  }
  if (end == CUNWIND_END_COMPLETE && crossed.unknown_code) end = CUNWIND_END_UNKNOWN_CODE;
  stack->end = (uint8_t)end;
  finish(&recorder);
}
