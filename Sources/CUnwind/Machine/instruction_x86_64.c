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

// The forms of the opcodes of a map, one character for each. In both maps "m" has ModR/M, "b" ModR/M and an immediate of
// 1 byte, "1" to "4" only an immediate of so many bytes, "." none of these, and "-" is not an instruction. In the map of
// one byte, "z" has an immediate of the operand's size (4 bytes, or 2 with the prefix 66), "y" ModR/M and such an
// immediate, "v" one that can also have 8 bytes, and "a" an address.
static const char one_byte_forms[] =
    "mmmm1z--mmmm1z--mmmm1z--mmmm1z--mmmm1z--mmmm1z--mmmm1z--mmmm1z--"
    "................................--.m....zy1b....1111111111111111"
    "by-bmmmmmmmmmmmm..........-.....aaaa....1z......11111111vvvvvvvv"
    "bb2...by3.2..1-.mmmm---.mmmmmmmm1111111144-1..........mm......mm";
static const char forms_of_0f[] =
    "mmmmm.....m.mm.bmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm........mmmmmmmm"
    "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmbbbbmmm.mmmmmmmm"
    "4444444444444444mmmmmmmmmmmmmmmm...mbmmm...mbmmmmmmmmmmmmmbmmmmm"
    "mmbmbbbm........mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

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
  char form = found->map == 0 ? one_byte_forms[op] : found->map == 1 ? forms_of_0f[op] : found->map == 3 ? 'b' : 'm';
  if (form == '-' || reader.failed) return false;
  // Of the vector instructions in map 1 only vzeroupper has no ModR/M.
  bool is_vector_operation = is_vector && found->map == 1 && op != 0x77;
  found->opcode = op;
  found->has_modrm = is_vector_operation || form == 'm' || form == 'b' || form == 'y';
  if (found->has_modrm) take_address(&reader, found);
  unsigned bytes = 0;
  if (form >= '1' && form <= '4') bytes = (unsigned)(form - '0');
  else if (form == 'b') bytes = 1;
  else if (form == 'z' || form == 'y') bytes = z;
  else if (form == 'v') bytes = found->rex & 8 ? 8 : z;
  else if (form == 'a') bytes = is_short_address ? 4 : 8;
  // TEST; the others of its group have no immediate.
  if (found->map == 0 && (op == 0xf6 || op == 0xf7) && (found->modrm & 0x38) < 0x10) bytes = op == 0xf6 ? 1 : z;
  if (bytes) found->immediate = take_signed(&reader, bytes);
  found->length = (unsigned)(reader.at - code);
  return !reader.failed;
}

#endif
