// A thread's registers during an unwind: the set of known registers, and their values.
//
// The numbers are DWARF's (System V x86-64 psABI figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1), with
// the PC appended. A read knows only SP and PC. A step without call frame information loses the registers that the
// function may have overwritten.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>
#include <ucontext.h>

#if defined(__x86_64__)
enum { CUNWIND_FP = 6, CUNWIND_SP = 7, CUNWIND_PC = 16, CUNWIND_REGISTER_COUNT = 17 };
/// The number of bytes below SP that a leaf function may use (psABI 3.2.2).
#define CUNWIND_RED_ZONE_BYTES 128u
#define CUNWIND_PTRACE_SP rsp
#else
enum { CUNWIND_FP = 29, CUNWIND_LR = 30, CUNWIND_SP = 31, CUNWIND_PC = 32, CUNWIND_REGISTER_COUNT = 33 };
#define CUNWIND_RED_ZONE_BYTES 0u
#define CUNWIND_PTRACE_SP sp
#endif
typedef struct user_regs_struct cunwind_ptrace_registers;

typedef struct cunwind_registers {
  uint64_t known;  ///< Bit n: `value[n]` is valid.
  uint64_t value[CUNWIND_REGISTER_COUNT];
} cunwind_registers;

static inline bool cunwind_is_known(const cunwind_registers *registers, int number) {
  return (registers->known >> number) & 1;
}

static inline void cunwind_set_register(cunwind_registers *registers, int number, uint64_t value) {
  registers->value[number] = value;
  registers->known |= 1ull << number;
}

#pragma GCC visibility push(hidden)

extern const uint8_t cunwind_argument_registers[6];

/// The registers from PTRACE_GETREGSET's NT_PRSTATUS.
void cunwind_registers_from_ptrace(cunwind_registers *to, const cunwind_ptrace_registers *from);

/// The registers from the context of a signal handler. Async-signal-safe: yes.
void cunwind_registers_from_context(cunwind_registers *to, const ucontext_t *from);

#pragma GCC visibility pop
