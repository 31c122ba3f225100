// Recognizes the prologue of a Swift async function on aarch64.
//
//   orr x29, x29, #1<<60                 only sometimes
//   sub sp, sp, #n; stp x29, x30, [sp, #s + 8]; …; str x22, [sp, #s]; add x29, sp, #s + 8
//
// The extended frame of LLVM's AArch64FrameLowering: x22 is the async context, which no other function stores just
// below the saved frame pointer.

#if defined(__aarch64__)

#include "Unwinding/unwind.h"

/// The most instructions in which the prologue saves registers. There are ten pairs of them.
#define PROLOGUE_INSTRUCTIONS 14u

bool cunwind_async_frame_slots(cunwind_unwinder *unwinder, uint64_t pc, bool is_exact, uint64_t cfa, uint64_t *slot,
                               uint64_t *return_slot) {
  uint64_t start, end, reserved = 0, context = UINT64_MAX;
  uint32_t code[PROLOGUE_INSTRUCTIONS];
  if (!cunwind_function_at(unwinder, is_exact ? pc : pc - 4, &start, &end)) return false;
  unsigned count = end - start < sizeof code ? (unsigned)((end - start) / sizeof *code) : PROLOGUE_INSTRUCTIONS;
  if (!cunwind_page_cache_read(unwinder->pages, start, code, count * sizeof *code)) return false;
  for (unsigned index = 0; index < count; index++) {
    uint64_t immediate = (code[index] >> 10) & 0xfff;
    if (reserved == 0 && (code[index] & 0xffc003ffu) == 0xd10003ffu) reserved = immediate;  // sub sp, sp, #
    else if ((code[index] & 0xffc003ffu) == 0xf90003f6u) context = immediate * 8;           // str x22, [sp, #]
    else if ((code[index] & 0xffc003ffu) == 0x910003fdu) {                                  // add x29, sp, #
      // Before this instruction, the context may not be stored yet.
      if (context == UINT64_MAX || immediate != context + 8 || pc <= start + index * sizeof *code) return false;
      *slot = cfa - reserved + context;
      *return_slot = *slot + 16;
      return true;
    }
  }
  return false;
}

#endif
