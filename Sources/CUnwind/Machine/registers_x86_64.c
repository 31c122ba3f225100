// Registers on x86-64: from ptrace, and from a signal handler's context.

#if defined(__x86_64__)

#define _GNU_SOURCE
#include "Machine/registers.h"
#include "System/raw_system_call.h"

void cunwind_registers_from_ptrace(cunwind_registers *to, const cunwind_ptrace_registers *from) {
  const uint64_t values[CUNWIND_REGISTER_COUNT] = {
      from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp, from->r8,
      from->r9,  from->r10, from->r11, from->r12, from->r13, from->r14, from->r15, from->rip,
  };
  to->known = 0;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) cunwind_set_register(to, number, values[number]);
}

void cunwind_registers_from_system_call(cunwind_registers *to, uint64_t stack_pointer, uint64_t pc,
                                        const uint64_t arguments[6], bool is_in_call) {
  static const uint8_t places[6] = {5, 4, 1, 10, 8, 9};  // rdi, rsi, rdx, r10, r8, r9 (psABI A.2.1)
  to->known = 0;
  cunwind_set_register(to, CUNWIND_SP, stack_pointer);
  cunwind_set_register(to, CUNWIND_PC, pc);
  // Unwinding needs rdi: glibc's vfork keeps its return address there, and its CFI says so.
  for (int index = 0; is_in_call && index < 6; index++) cunwind_set_register(to, places[index], arguments[index]);
}

CUNWIND_BARE void cunwind_registers_from_context(cunwind_registers *to, const ucontext_t *from) {
  static const uint8_t places[CUNWIND_REGISTER_COUNT] = {
      REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
  };
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    to->value[number] = (uint64_t)from->uc_mcontext.gregs[places[number]];
  }
  to->known = (1ull << CUNWIND_REGISTER_COUNT) - 1;
}

#endif
