// Instructions of x86-64, as far as needed to step over one and to find its effect on rsp. By Intel's SDM, volume 2:
// chapter 2 (formats) and appendix A (opcode maps), 64-bit mode.

#pragma once

#if defined(__x86_64__)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUNWIND_LONGEST_INSTRUCTION 15

/// The numbers of registers in instructions.
enum { RBX = 3, RSP = 4, RBP = 5, R12 = 12, R15 = 15 };

typedef struct cunwind_instruction {
  unsigned length;
  unsigned map;  // 0: one-byte opcodes, 1: 0F, 2: 0F 38, 3: 0F 3A; VEX and EVEX use the same numbers.
  uint8_t opcode;
  uint8_t rex;  // 0: none.
  bool has_modrm;
  uint8_t modrm, sib;
  int32_t displacement;
  int32_t immediate;  // Sign-extended; the low half of an immediate of 8 bytes.
} cunwind_instruction;

#pragma GCC visibility push(hidden)

/// False: it is not an instruction, or longer than `available`.
bool cunwind_decode(const uint8_t *code, size_t available, cunwind_instruction *found);

#pragma GCC visibility pop

static inline unsigned cunwind_register_of(const cunwind_instruction *at) {
  return (at->modrm & 7) | (at->rex & 1) << 3;
}
static inline unsigned cunwind_source_of(const cunwind_instruction *at) {
  return ((at->modrm >> 3) & 7) | (at->rex & 4) << 1;
}
static inline bool cunwind_names_register(const cunwind_instruction *at) { return at->modrm >> 6 == 3; }

/// Whether a function that changes the register saves it first.
static inline bool cunwind_is_saved_register(unsigned number) {
  return number == RBX || number == RBP || (number >= R12 && number <= R15);
}

/// "lea disp(base),register": the base, or -1.
static inline int cunwind_base_of(const cunwind_instruction *at) {
  if (cunwind_names_register(at) || (at->modrm >> 6) == 0) return -1;
  if ((at->modrm & 7) == 4) return at->sib == 0x24 && !(at->rex & 3) ? RSP : -1;
  return (int)cunwind_register_of(at);
}

static inline bool cunwind_is_call_instruction(const cunwind_instruction *at) {
  return at->map == 0 && (at->opcode == 0xe8 || (at->opcode == 0xff && (at->modrm & 0x38) == 0x10));
}

static inline bool cunwind_is_jump(const cunwind_instruction *at) {
  return at->map == 0 && (at->opcode == 0xe9 || at->opcode == 0xeb);
}

/// A jump with a condition: Jcc, LOOP, JRCXZ. All jumps have their target in the instruction.
static inline bool cunwind_is_conditional_jump(const cunwind_instruction *at) {
  return (at->map == 0 && ((at->opcode >= 0x70 && at->opcode <= 0x7f) || (at->opcode >= 0xe0 && at->opcode <= 0xe3))) ||
         (at->map == 1 && at->opcode >= 0x80 && at->opcode <= 0x8f);
}

#endif
