// Takes an x86-64 instruction apart as far as is needed to step over it and to see what it does to rsp.

#ifndef CUNWIND_INSTRUCTION_X86_64_H
#define CUNWIND_INSTRUCTION_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// No instruction is longer.
#define CUNWIND_LONGEST_INSTRUCTION 15

typedef struct cunwind_instruction {
  unsigned length;
  unsigned map;  ///< 0: one-byte opcodes, 1: 0F, 2: 0F 38, 3: 0F 3A; VEX and EVEX use the same numbers.
  uint8_t opcode;
  uint8_t rex;  ///< 0: none.
  bool has_modrm;
  uint8_t modrm, sib;
  int32_t displacement;
  int32_t immediate;  ///< Sign-extended; of an 8-byte one the low half.
} cunwind_instruction;

#pragma GCC visibility push(hidden)

/// False: not an instruction, or cut off by `available`.
bool cunwind_decode(const uint8_t *code, size_t available, cunwind_instruction *instruction);

#pragma GCC visibility pop

#endif
