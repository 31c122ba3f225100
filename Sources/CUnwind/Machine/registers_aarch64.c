// Registers on aarch64: from ptrace, and from a signal handler's context.
//
// `make test-aarch64` runs the aarch64 files under Linux 6.1 in qemu-system-aarch64.

#if defined(__aarch64__)

#define _GNU_SOURCE
#include "Machine/registers.h"
#include "System/raw_system_call.h"

void cunwind_registers_from_ptrace(cunwind_registers *to, const cunwind_ptrace_registers *from) {
  to->known = 0;
  for (int number = 0; number <= CUNWIND_LR; number++) cunwind_set_register(to, number, from->regs[number]);
  cunwind_set_register(to, CUNWIND_SP, from->sp);
  cunwind_set_register(to, CUNWIND_PC, from->pc);
}

// Leaves x0 out: it already holds the call's result.
void cunwind_registers_from_system_call(cunwind_registers *to, uint64_t stack_pointer, uint64_t pc,
                                        const uint64_t arguments[6], bool is_in_call) {
  to->known = 0;
  cunwind_set_register(to, CUNWIND_SP, stack_pointer);
  cunwind_set_register(to, CUNWIND_PC, pc);
  for (int index = 1; is_in_call && index < 6; index++) cunwind_set_register(to, index, arguments[index]);
}

CUNWIND_BARE void cunwind_registers_from_context(cunwind_registers *to, const ucontext_t *from) {
  for (int number = 0; number <= CUNWIND_LR; number++) to->value[number] = from->uc_mcontext.regs[number];
  to->value[CUNWIND_SP] = from->uc_mcontext.sp;
  to->value[CUNWIND_PC] = from->uc_mcontext.pc;
  to->known = (1ull << CUNWIND_REGISTER_COUNT) - 1;
}

#endif
