// Instruction lengths by Intel's SDM, volume 2: chapter 2 (formats) and appendix A (opcode maps), 64-bit mode.

#if defined(__x86_64__)

#include "Machine/instruction_x86_64.h"

#include <string.h>

typedef struct reader {
  const uint8_t *at, *end;
  bool failed;
} reader;

static uint8_t take(reader *reader) {
  if (reader->at < reader->end) return *reader->at++;
  reader->failed = true;
  return 0;
}

static int32_t take_signed(reader *reader, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned index = 0; index < bytes; index++) value |= (uint64_t)take(reader) << (8 * index);
  if (bytes == 1) return (int8_t)value;
  if (bytes == 2) return (int16_t)value;
  return (int32_t)value;
}

typedef struct form {
  bool is_valid, has_modrm;
  unsigned immediate_bytes;
} form;

// `z` is the size of an operand-sized immediate: 4, or 2 with prefix 66. It is never 8, except in B8...BF.
static form form_of_one_byte(uint8_t op, unsigned z, bool is_wide, bool is_short_address) {
  const form none = {true, false, 0}, modrm = {true, true, 0}, invalid = {false, false, 0};
  if (op < 0x40) {
    unsigned low = op & 7;
    return low < 4 ? modrm : low == 4 ? (form){true, false, 1} : low == 5 ? (form){true, false, z} : invalid;
  }
  if (op < 0x60) return none;
  switch (op) {
    case 0x60:
    case 0x61:
    case 0x82:
    case 0x9a:
    case 0xce:
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xea:
      return invalid;
    case 0x63:
      return modrm;
    case 0x68:
    case 0xa9:
      return (form){true, false, z};
    case 0x69:
    case 0x81:
    case 0xc7:
      return (form){true, true, z};
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
    case 0xc6:
      return (form){true, true, 1};
    case 0x6a:
    case 0xa8:
    case 0xcd:
    case 0xeb:
      return (form){true, false, 1};
    case 0xa0:
    case 0xa1:
    case 0xa2:
    case 0xa3:
      return (form){true, false, is_short_address ? 4 : 8};
    case 0xc2:
    case 0xca:
      return (form){true, false, 2};
    case 0xc8:
      return (form){true, false, 3};
    case 0xe8:
    case 0xe9:
      return (form){true, false, 4};
    default:
      break;
  }
  if (op >= 0x70 && op < 0x80) return (form){true, false, 1};
  if (op >= 0x84 && op < 0x90) return modrm;
  if (op >= 0xb0 && op < 0xb8) return (form){true, false, 1};
  if (op >= 0xb8 && op < 0xc0) return (form){true, false, is_wide ? 8 : z};
  if ((op >= 0xd0 && op < 0xd4) || (op >= 0xd8 && op < 0xe0)) return modrm;
  if (op >= 0xe0 && op < 0xe8) return (form){true, false, 1};
  if (op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff) return modrm;
  return none;
}

static form form_of_0f(uint8_t op) {
  if ((op >= 0x05 && op <= 0x0b && op != 0x0a) || op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
      op == 0xa0 || op == 0xa1 || op == 0xa2 || op == 0xa8 || op == 0xa9 || op == 0xaa || (op >= 0xc8 && op <= 0xcf))
    return (form){true, false, 0};
  if (op >= 0x80 && op <= 0x8f) return (form){true, false, 4};
  if (op == 0x0f || (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 || op == 0xc4 ||
      op == 0xc5 || op == 0xc6)
    return (form){true, true, 1};
  return (form){true, true, 0};
}

static void take_address(reader *reader, cunwind_instruction *found) {
  found->modrm = take(reader);
  unsigned mode = found->modrm >> 6, base = found->modrm & 7;
  if (mode == 3) return;
  if (base == 4) {
    found->sib = take(reader);
    base = found->sib & 7;
  }
  if (mode == 1) found->displacement = take_signed(reader, 1);
  else if (mode == 2 || base == 5) found->displacement = take_signed(reader, 4);
}

// VEX (C5, C4) and EVEX (62) contain the map; in other instructions the escape bytes select it.
static void take_vector_prefix(reader *reader, uint8_t first, cunwind_instruction *found) {
  uint8_t byte = take(reader);
  found->map = first == 0xc5 ? 1 : first == 0xc4 ? byte & 0x1f : byte & 7;
  if (first != 0xc5) take(reader);
  if (first == 0x62) take(reader);
  if (found->map == 5 || found->map == 6) found->map = 2;  // AVX512-FP16: ModR/M and no immediate, like map 2.
  if (found->map < 1 || found->map > 3) reader->failed = true;
}

bool cunwind_decode(const uint8_t *code, size_t available, cunwind_instruction *found) {
  if (available > CUNWIND_LONGEST_INSTRUCTION) available = CUNWIND_LONGEST_INSTRUCTION;
  reader reader = {code, code + available, false};
  unsigned z = 4;
  bool is_short_address = false, is_vector = false;
  memset(found, 0, sizeof *found);
  uint8_t op = take(&reader);
  for (;; op = take(&reader)) {
    if (op == 0x66) z = 2;
    else if (op == 0x67) is_short_address = true;
    else if (op != 0xf0 && op != 0xf2 && op != 0xf3 && op != 0x26 && op != 0x2e && op != 0x36 && op != 0x3e &&
             op != 0x64 && op != 0x65)
      break;
    if (reader.failed) return false;
  }
  if ((op & 0xf0) == 0x40) {
    found->rex = op;
    op = take(&reader);
  }
  if (op == 0xc4 || op == 0xc5 || op == 0x62) {
    take_vector_prefix(&reader, op, found);
    is_vector = true;
    op = take(&reader);
  } else if (op == 0x0f) {
    found->map = 1;
    op = take(&reader);
    if (op == 0x38 || op == 0x3a) {
      found->map = op == 0x38 ? 2 : 3;
      op = take(&reader);
    }
  }
  form form;
  if (found->map == 0) form = form_of_one_byte(op, z, found->rex & 8, is_short_address);
  else if (found->map == 1) form = form_of_0f(op);
  else form = (struct form){true, true, found->map == 3 ? 1 : 0};
  if (!form.is_valid || reader.failed) return false;
  // Of the vector instructions in map 1 only vzeroupper has no ModR/M.
  if (is_vector && found->map == 1 && op != 0x77) form.has_modrm = true;
  found->opcode = op;
  found->has_modrm = form.has_modrm;
  if (form.has_modrm) take_address(&reader, found);
  if (found->map == 0 && (op == 0xf6 || op == 0xf7) && (found->modrm & 0x38) < 0x10) {
    form.immediate_bytes = op == 0xf6 ? 1 : z;  // TEST; the others of this group have no immediate.
  }
  if (form.immediate_bytes) found->immediate = take_signed(&reader, form.immediate_bytes);
  found->length = (unsigned)(reader.at - code);
  return !reader.failed;
}

#endif
