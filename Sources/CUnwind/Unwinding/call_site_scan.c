// Steps where no unwind information covers the PC.
//
// Large parts of the Swift toolchain's own libraries have no unwind information. But a function's return address is
// always the first word above its locals, and follows a call instruction. So this step takes the next such word
// outwards, unless it is left over from an earlier call. The frame pointer is either saved right below that word, or
// unchanged.

#include "Unwinding/unwind.h"

// Sets the caller's registers, if only the function's return address is known. The function may have saved and changed
// every callee-saved register, but no compiler uses the frame pointer for other values in a function that does not save
// it.
static void return_from(const cunwind_registers *from, cunwind_registers *to, uint64_t pc, uint64_t stack_pointer) {
  to->known = 0;
  cunwind_set_register(to, CUNWIND_PC, pc);
  cunwind_set_register(to, CUNWIND_SP, stack_pointer);
  if (cunwind_is_known(from, CUNWIND_FP)) cunwind_set_register(to, CUNWIND_FP, from->value[CUNWIND_FP]);
}

#if defined(__x86_64__)

// Returns the address of the return address in the record of the frame pointer; 0 if there is no record.
static uint64_t slot_of_record(cunwind_unwinder *unwinder, const cunwind_registers *from) {
  uint64_t record = from->value[CUNWIND_FP], word;
  if (!cunwind_is_known(from, CUNWIND_FP) || record % 8 != 0 || record < from->value[CUNWIND_SP]) return 0;
  if (!cunwind_stack_copy_read(unwinder->copy, record + 8, &word, sizeof word)) return 0;
  return cunwind_follows_call(unwinder, word, NULL) ? record + 8 : 0;
}

// Uninitialized locals contain words of earlier calls, including return addresses. A return address of a call into
// another image does not belong to this function, unless a tail call led here.
static bool is_left_over(const cunwind_unwinder *unwinder, uint64_t pc, uint64_t target) {
  return target != 0 &&
         cunwind_module_of_code(unwinder->modules, target) != cunwind_module_of_code(unwinder->modules, pc);
}

cunwind_step cunwind_step_by_call_site(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to) {
  uint64_t pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1), record = slot_of_record(unwinder, from), target;
  uint64_t stack_pointer = (from->value[CUNWIND_SP] + 7) & ~7ull;
  for (unsigned index = 0; index < CUNWIND_SCAN_WORDS; index++) {
    uint64_t slot = stack_pointer + index * 8ull, word, saved;
    if (!cunwind_stack_copy_read(unwinder->copy, slot, &word, sizeof word)) break;
    if (!cunwind_follows_call(unwinder, word, &target)) continue;
    if (slot < record && is_left_over(unwinder, pc, cunwind_resolve_stub(unwinder, target))) continue;
    return_from(from, to, word, slot + 8);
    if (cunwind_is_known(from, CUNWIND_FP) && from->value[CUNWIND_FP] + 8 == slot &&
        cunwind_stack_copy_read(unwinder->copy, slot - 8, &saved, sizeof saved)) {
      cunwind_set_register(to, CUNWIND_FP, saved);
    }
    return CUNWIND_STEP_OK;
  }
  return CUNWIND_STEP_NO_INFO;
}

#else

// On aarch64 the return address is in LR until a function saves it in the frame record of FP (AAPCS64 6.4.6). It is not
// above the locals, so there is nothing to scan for.
cunwind_step cunwind_step_by_call_site(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to) {
  if (!is_exact || !cunwind_is_known(from, CUNWIND_LR)) return CUNWIND_STEP_NO_INFO;
  uint64_t link = cunwind_strip(from->value[CUNWIND_LR]), saved;
  if (!cunwind_follows_call(unwinder, link, NULL)) return CUNWIND_STEP_NO_INFO;
  // If the record contains LR, this function has saved it: the record is its own.
  if (cunwind_is_known(from, CUNWIND_FP) &&
      cunwind_stack_copy_read(unwinder->copy, from->value[CUNWIND_FP] + 8, &saved, sizeof saved) &&
      cunwind_strip(saved) == link) {
    return CUNWIND_STEP_NO_INFO;
  }
  return_from(from, to, link, from->value[CUNWIND_SP]);
  return CUNWIND_STEP_OK;
}

#endif
