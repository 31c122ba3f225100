// Decodes an x86-64 instruction as far as needed to step over it and to find its effect on rsp.

#ifndef CUNWIND_INSTRUCTION_X86_64_H
#define CUNWIND_INSTRUCTION_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The length of the longest instruction, in bytes.
#define CUNWIND_LONGEST_INSTRUCTION 15

typedef struct cunwind_instruction {
  unsigned length;
  unsigned map;  ///< 0: one-byte opcodes, 1: 0F, 2: 0F 38, 3: 0F 3A; VEX and EVEX use the same numbers.
  uint8_t opcode;
  uint8_t rex;  ///< 0: none.
  bool has_modrm;
  uint8_t modrm, sib;
  int32_t displacement;
  int32_t immediate;  ///< Sign-extended; the low half of an immediate of 8 bytes.
} cunwind_instruction;

#pragma GCC visibility push(hidden)

/// Decodes the instruction at `code`. False: it is not an instruction, or longer than `available`.
bool cunwind_decode(const uint8_t *code, size_t available, cunwind_instruction *instruction);

#pragma GCC visibility pop

#endif
