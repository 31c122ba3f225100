// Recognizes calls and signal returns in aarch64 machine code (Arm ARM, C4.1: branches; C6.2: BL, BLR).

#if defined(__aarch64__)

#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "Engine/engine.h"
#include "Memory/guarded_memory.h"
#include "Unwinding/unwind.h"

// Pointer authentication puts a signature into the bits above the address (bit 55 tells user from kernel space). User
// addresses have 48 bits unless an mmap hint asked for more (Documentation/arch/arm64/memory.rst).
uint64_t cunwind_strip(uint64_t address) { return address & 0x0000ffffffffffffull; }

bool cunwind_follows_call(cunwind_unwinder *unwinder, uint64_t address, uint64_t *target) {
  uint32_t code;
  if (target) *target = 0;
  if (address % 4 != 0 || !cunwind_module_of_code(unwinder->modules, address - 4)) return false;
  if (!cunwind_page_cache_read(unwinder->pages, address - 4, &code, sizeof code)) return false;
  if ((code & 0xfc000000u) == 0x94000000u) {  // BL: a signed 26-bit count of instructions.
    int64_t offset = (int64_t)((uint64_t)(code & 0x03ffffffu) << 38) >> 36;
    if (target) *target = address - 4 + (uint64_t)offset;
    return true;
  }
  return (code & 0xfffffc1fu) == 0xd63f0000u ||  // BLR
         (code & 0xfefff800u) == 0xd63f0800u;    // BLRAA, BLRAB, and with zero modifier
}

uint64_t cunwind_resolve_stub(cunwind_unwinder *unwinder, uint64_t target) {
  (void)unwinder;
  return target;
}

// The vDSO's __kernel_rt_sigreturn, and every C library's own: "mov x8, #139; svc #0".
bool cunwind_is_signal_return(cunwind_unwinder *unwinder, uint64_t pc) {
  static const uint32_t restorer[] = {0xd2801168u, 0xd4000001u};
  uint32_t code[2];
  return cunwind_module_of_code(unwinder->modules, pc) &&
         cunwind_page_cache_read(unwinder->pages, pc, code, sizeof code) && memcmp(code, restorer, sizeof code) == 0;
}

// struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, then ucontext, from SP up.
cunwind_step cunwind_step_out_of_signal(cunwind_unwinder *unwinder, const cunwind_registers *from,
                                        cunwind_registers *to) {
  uint64_t saved[33];  // struct sigcontext: fault_address comes before; regs[31], sp, pc.
  uint64_t at = from->value[CUNWIND_SP] + sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext.regs);
  if (!cunwind_read(unwinder, at, saved, sizeof saved)) return CUNWIND_STEP_NO_MEMORY;
  to->known = 0;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) cunwind_set_register(to, number, saved[number]);
  return CUNWIND_STEP_OK;
}

bool cunwind_call_before(uint64_t pc, const cunwind_registers *registers, int64_t *number) {
  uint32_t code;
  if (pc < sizeof code || cunwind_guarded_read(pc - sizeof code, &code, sizeof code) != sizeof code) return false;
  *number = (int64_t)registers->value[8];
  return code == 0xd4000001;  // svc #0, with the number in x8.
}

#endif
