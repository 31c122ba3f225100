// Computes a function's frame pointer where only SP is known. After "mov %rsp,%rbp", the distance between the two is the
// sum of all pushes and subtractions since then. So this code follows the function from its start to PC: gcc mixes other
// instructions into its prologues and pushes call arguments. After a return, the distance is that of a jump to there. If
// a function moves rsp by an amount that is not in the code (alloca, a variable-length array), the distance is unknown.
// Then the code searches for a frame record that only a call of this function can have written.

#if defined(__x86_64__)

#include <string.h>

#include "Unwinding/unwind.h"

#define LONGEST_INSTRUCTION 15
/// The most bytes of code that are followed. In a longer function the distance counts as unknown.
#define FOLLOWED_BYTES 65536u
/// The most forward jumps that are remembered at a time, for the distance after a return.
#define PENDING_JUMPS 128u
/// The bytes of stack that are searched for the record of a function without a fixed distance.
#define SEARCHED_BYTES 65536u

// ---- Decoding -------------------------------------------------------------------------------------------------------
// As far as needed to step over an instruction and to find its effect on rsp. By Intel's SDM, volume 2: chapter 2
// (formats) and appendix A (opcode maps), 64-bit mode.

typedef struct instruction {
  unsigned length;
  unsigned map;  // 0: one-byte opcodes, 1: 0F, 2: 0F 38, 3: 0F 3A; VEX and EVEX use the same numbers.
  uint8_t opcode;
  uint8_t rex;  // 0: none.
  bool has_modrm;
  uint8_t modrm, sib;
  int32_t displacement;
  int32_t immediate;  // Sign-extended; the low half of an immediate of 8 bytes.
} instruction;

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

static void take_address(reader *reader, instruction *found) {
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
static void take_vector_prefix(reader *reader, uint8_t first, instruction *found) {
  uint8_t byte = take(reader);
  found->map = first == 0xc5 ? 1 : first == 0xc4 ? byte & 0x1f : byte & 7;
  if (first != 0xc5) take(reader);
  if (first == 0x62) take(reader);
  if (found->map == 5 || found->map == 6) found->map = 2;  // AVX512-FP16: ModR/M and no immediate, like map 2.
  if (found->map < 1 || found->map > 3) reader->failed = true;
}

// False: it is not an instruction, or longer than `available`.
static bool decode(const uint8_t *code, size_t available, instruction *found) {
  if (available > LONGEST_INSTRUCTION) available = LONGEST_INSTRUCTION;
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

// ---- Following ------------------------------------------------------------------------------------------------------

enum { RBX = 3, RSP = 4, RBP = 5, R12 = 12, R15 = 15 };

typedef struct distance {
  bool is_set;    // The function has set the frame pointer.
  bool is_fixed;  // Every change of rsp so far was by an amount in the code.
  int64_t bytes;  // rbp - rsp.
  int64_t body;   // The same after the prologue.
  int64_t slack;  // The most bytes that "and $-n,%rsp" may have added.
  bool in_prologue;
  bool after_push;  // The last instruction was one of the pushes at the beginning of the frame.
} distance;

// Forward jumps whose targets have not been reached yet, with the distance there.
typedef struct jumps {
  struct {
    uint64_t target;
    int64_t bytes;
  } list[PENDING_JUMPS];
  unsigned count;
} jumps;

static unsigned register_of(const instruction *at) { return (at->modrm & 7) | (at->rex & 1) << 3; }
static unsigned source_of(const instruction *at) { return ((at->modrm >> 3) & 7) | (at->rex & 4) << 1; }
static bool names_register(const instruction *at) { return at->modrm >> 6 == 3; }

static void grow(distance *now, int64_t bytes, bool is_of_frame) {
  now->bytes += bytes;
  if (is_of_frame && now->in_prologue) now->body = now->bytes;
}

// "lea disp(base),register": the base, or -1.
static int base_of(const instruction *at) {
  if (names_register(at) || (at->modrm >> 6) == 0) return -1;
  if ((at->modrm & 7) == 4) return at->sib == 0x24 && !(at->rex & 3) ? RSP : -1;
  return (int)register_of(at);
}

static void follow_arithmetic(const instruction *at, distance *now) {
  enum { ADD = 0, AND = 4, SUB = 5, CMP = 7 };
  unsigned operation = (at->modrm >> 3) & 7;
  if (operation == SUB) grow(now, at->immediate, true);
  else if (operation == ADD) grow(now, -(int64_t)at->immediate, true);
  else if (operation == AND) now->slack += -(int64_t)at->immediate - 1;
  else if (operation != CMP) now->is_fixed = false;
}

static void follow_one_byte(const instruction *at, distance *now) {
  uint8_t op = at->opcode;
  bool after_push = now->after_push;
  now->after_push = false;
  unsigned low = (op & 7) | (at->rex & 1) << 3;
  if (op >= 0x50 && op <= 0x57) {
    // A function pushes a scratch register right after the saved ones to get 8 bytes (clang), or later as an argument.
    bool is_saved = low == RBX || low == RBP || (low >= R12 && low <= R15);
    grow(now, 8, is_saved || after_push);
    now->after_push = true;
  } else if (op == 0x68 || op == 0x6a || (op == 0xff && (at->modrm & 0x38) == 0x30)) {  // push a number, or memory
    grow(now, 8, false);
  } else if ((op >= 0x58 && op <= 0x5f) || op == 0x8f) {
    grow(now, -8, false);
  } else if ((op == 0x81 || op == 0x83) && names_register(at) && register_of(at) == RSP) {
    follow_arithmetic(at, now);
  } else if ((op == 0x89 && names_register(at) && source_of(at) == RSP && register_of(at) == RBP) ||
             (op == 0x8b && names_register(at) && register_of(at) == RSP && source_of(at) == RBP) ||
             (op == 0x8d && source_of(at) == RBP && base_of(at) == RSP)) {
    // "mov %rsp,%rbp" (no displacement), or in async functions of Swift "lea 8(%rsp),%rbp", context below the record.
    *now = (distance){.is_set = true,
                      .is_fixed = true,
                      .in_prologue = true,
                      .after_push = true,
                      .bytes = at->displacement,
                      .body = at->displacement};
  } else if (op == 0x8d && source_of(at) == RSP) {
    int base = base_of(at);
    if (base == RSP) grow(now, -(int64_t)at->displacement, true);
    else if (base == RBP) now->bytes = -(int64_t)at->displacement;
    else now->is_fixed = false;
  } else if (((op == 0x89 || op == 0x29 || op == 0x01 || op == 0x87) && names_register(at) && register_of(at) == RSP) ||
             ((op == 0x8b || op == 0x2b || op == 0x03) && source_of(at) == RSP)) {
    now->is_fixed = false;
  }
}

static bool is_call(const instruction *at) {
  return at->map == 0 && (at->opcode == 0xe8 || (at->opcode == 0xff && (at->modrm & 0x38) == 0x10));
}

// After these, the next instruction is reached only by a jump from a place where the frame is set up.
static bool is_end_of_path(const instruction *at) {
  if (at->map == 1) return at->opcode == 0x0b;  // ud2
  return at->map == 0 && (at->opcode == 0xc3 || at->opcode == 0xc2 || at->opcode == 0xe9 || at->opcode == 0xeb ||
                          at->opcode == 0xcc || (at->opcode == 0xff && (at->modrm & 0x38) == 0x20));
}

// A jump with its target in the instruction.
static bool is_branch(const instruction *at) {
  return (at->map == 0 && ((at->opcode >= 0x70 && at->opcode <= 0x7f) || at->opcode == 0xe9 || at->opcode == 0xeb)) ||
         (at->map == 1 && at->opcode >= 0x80 && at->opcode <= 0x8f);
}

static void remember_jump(jumps *jumps, uint64_t target, uint64_t address, int64_t bytes) {
  unsigned kept = 0;
  for (unsigned index = 0; index < jumps->count; index++) {
    if (jumps->list[index].target > address) jumps->list[kept++] = jumps->list[index];
  }
  jumps->count = kept;
  if (target <= address || kept == PENDING_JUMPS) return;
  jumps->list[kept].target = target;
  jumps->list[kept].bytes = bytes;
  jumps->count++;
}

static int64_t distance_behind_return(const jumps *jumps, uint64_t address, const distance *now) {
  for (unsigned index = 0; index < jumps->count; index++) {
    if (jumps->list[index].target == address) return jumps->list[index].bytes;
  }
  return now->body;
}

static distance follow(cunwind_unwinder *unwinder, uint64_t start, uint64_t pc) {
  distance now = {.is_fixed = true, .in_prologue = true};
  uint8_t code[LONGEST_INSTRUCTION];
  instruction at;
  if (pc - start > FOLLOWED_BYTES) return (distance){.is_set = true};
  jumps jumps = {.count = 0};
  uint64_t moved = 0;  // The last instruction that has moved rsp.
  bool has_called = false;
  for (uint64_t address = start; address < pc; address += at.length) {
    size_t available = pc - address < sizeof code ? (size_t)(pc - address) : sizeof code;
    if (!cunwind_page_cache_read(unwinder->pages, address, code, available) || !decode(code, available, &at)) {
      now.is_fixed = false;
      break;
    }
    uint64_t next = address + at.length, target = next + (uint64_t)(int64_t)at.immediate;
    int64_t before = now.bytes;
    if (at.map == 0 && at.opcode == 0xc9) now.bytes = -8;  // leave
    else if (at.map == 0) follow_one_byte(&at, &now);
    else now.after_push = false;
    if (now.bytes != before) moved = address;
    has_called |= is_call(&at);
    // The loop in a prologue that touches each page of a large frame (-fstack-clash-protection).
    if (is_branch(&at) && target <= moved && !has_called) now.is_fixed = false;
    if (is_branch(&at)) remember_jump(&jumps, target, address, now.bytes);
    if (is_end_of_path(&at)) now.bytes = distance_behind_return(&jumps, next, &now);
    if (now.is_set && (is_call(&at) || is_branch(&at) || is_end_of_path(&at))) now.in_prologue = false;
  }
  return now;
}

/// rbp is 16-byte aligned if it points to a record, because rsp + 8 is at a function's entry (psABI 3.2.2).
static bool is_record(cunwind_unwinder *unwinder, uint64_t frame_pointer, uint64_t *target) {
  uint64_t return_address;
  return frame_pointer % 16 == 0 &&
         cunwind_stack_copy_read(unwinder->copy, frame_pointer + 8, &return_address, sizeof return_address) &&
         cunwind_follows_call(unwinder, return_address, target);
}

cunwind_step cunwind_infer_frame_pointer(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                         uint64_t *frame_pointer) {
  uint64_t start, end, target, pc = from->value[CUNWIND_PC], stack_pointer = from->value[CUNWIND_SP];
  if (!cunwind_function_at(unwinder, pc - (is_exact ? 0 : 1), &start, &end)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  distance found = follow(unwinder, start, pc);
  if (!found.is_set) return CUNWIND_STEP_UNKNOWN_REGISTER;
  bool is_certain = found.is_fixed;
  uint64_t lowest = stack_pointer, highest = stack_pointer + SEARCHED_BYTES;
  if (is_certain) {
    if (found.bytes < 0 || found.slack < 0 || found.slack > SEARCHED_BYTES) return CUNWIND_STEP_UNKNOWN_REGISTER;
    lowest = stack_pointer + (uint64_t)found.bytes;
    highest = lowest + (uint64_t)found.slack;
  }
  for (uint64_t candidate = lowest; candidate <= highest; candidate += 8) {
    if (!is_record(unwinder, candidate, &target)) continue;
    if (!is_certain && cunwind_resolve_stub(unwinder, target) != start) continue;
    *frame_pointer = candidate;
    return CUNWIND_STEP_OK;
  }
  return CUNWIND_STEP_UNKNOWN_REGISTER;
}

#endif
