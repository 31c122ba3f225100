// Steps along the frame-pointer chain: [FP] is the caller's FP, [FP + 8] the return address, on both architectures.

#include "Unwinding/unwind.h"

cunwind_step cunwind_step_by_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                           cunwind_registers *to) {
  if (!cunwind_is_known(from, CUNWIND_FP)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  uint64_t record = from->value[CUNWIND_FP], words[2];
  if (record % 8 != 0 || record < from->value[CUNWIND_SP]) return CUNWIND_STEP_NO_INFO;
  if (!cunwind_stack_copy_read(unwinder->copy, record, words, sizeof words)) return CUNWIND_STEP_NO_INFO;
  uint64_t pc = cunwind_strip(words[1]);
  // The chain must lead outwards. The outermost function may have stored 0.
  if (words[0] != 0 && words[0] <= record) return CUNWIND_STEP_NO_INFO;
  if (!cunwind_follows_call(unwinder, pc, NULL)) return CUNWIND_STEP_NO_INFO;
  to->known = 0;
  cunwind_set_register(to, CUNWIND_PC, pc);
  cunwind_set_register(to, CUNWIND_SP, record + 16);
  cunwind_set_register(to, CUNWIND_FP, words[0]);
  return CUNWIND_STEP_OK;
}
