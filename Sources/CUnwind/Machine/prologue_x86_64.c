// Computes a function's frame pointer where only SP is known. After "mov %rsp,%rbp", the distance between the two is the
// sum of all pushes and subtractions since then. So this code follows the function from its start to PC: gcc mixes other
// instructions into its prologues and pushes call arguments. After a return, the distance is that of a jump to there. If
// a function moves rsp by an amount that is not in the code (alloca, a variable-length array), the distance is unknown.
// Then the code searches for a frame record that only a call of this function can have written.

#if defined(__x86_64__)

#include <string.h>

#include "Machine/instruction_x86_64.h"
#include "Unwinding/unwind.h"

/// The most bytes of code that are followed. In a longer function the distance counts as unknown.
#define FOLLOWED_BYTES 65536u
/// The most forward jumps that are remembered at a time, for the distance after a return.
#define PENDING_JUMPS 128u
/// The bytes of stack that are searched for the record of a function without a fixed distance.
#define SEARCHED_BYTES 65536u

// ---- Following ------------------------------------------------------------------------------------------------------

typedef struct distance {
  bool is_set;    // The function has set the frame pointer.
  bool is_fixed;  // Every change of rsp so far was by an amount in the code.
  int64_t bytes;  // rbp - rsp.
  int64_t body;   // The same after the prologue.
  int64_t slack;  // The most bytes that "and $-n,%rsp" may have added.
  bool in_prologue;
  bool after_push;  // The last instruction was one of the pushes at the beginning of the frame.
  bool has_hole;    // An instruction may have been reached from elsewhere.
  int64_t above;    // From the frame pointer, if it is set, to the return address.
  int64_t saved;    // From the saved frame pointer to the return address; 0: it is not saved.
} distance;

// Forward jumps whose targets have not been reached yet, with the distance there.
typedef struct jumps {
  struct {
    uint64_t target;
    int64_t bytes;
  } list[PENDING_JUMPS];
  unsigned count;
} jumps;

static void grow(distance *now, int64_t bytes, bool is_of_frame) {
  now->bytes += bytes;
  if (is_of_frame && now->in_prologue) now->body = now->bytes;
}

static void follow_arithmetic(const cunwind_instruction *at, distance *now) {
  enum { ADD = 0, AND = 4, SUB = 5, CMP = 7 };
  unsigned operation = (at->modrm >> 3) & 7;
  if (operation == SUB) grow(now, at->immediate, true);
  else if (operation == ADD) grow(now, -(int64_t)at->immediate, true);
  else if (operation == AND) now->slack += -(int64_t)at->immediate - 1;
  else if (operation != CMP) now->is_fixed = false;
}

static void follow_one_byte(const cunwind_instruction *at, distance *now) {
  uint8_t op = at->opcode;
  bool after_push = now->after_push;
  now->after_push = false;
  unsigned low = (op & 7) | (at->rex & 1) << 3;
  if (op >= 0x50 && op <= 0x57) {
    // A function pushes a scratch register right after the saved ones to get 8 bytes (clang), or later as an argument.
    bool is_saved = cunwind_is_saved_register(low);
    grow(now, 8, is_saved || after_push);
    now->after_push = true;
    if (low == RBP && !now->is_set && now->saved == 0) now->saved = now->bytes;
  } else if (op == 0x68 || op == 0x6a || (op == 0xff && (at->modrm & 0x38) == 0x30)) {  // push a number, or memory
    grow(now, 8, false);
  } else if ((op >= 0x58 && op <= 0x5f) || op == 0x8f) {
    grow(now, -8, false);
  } else if ((op == 0x81 || op == 0x83) && cunwind_names_register(at) && cunwind_register_of(at) == RSP) {
    follow_arithmetic(at, now);
  } else if ((op == 0x89 && cunwind_names_register(at) && cunwind_source_of(at) == RSP &&
              cunwind_register_of(at) == RBP) ||
             (op == 0x8b && cunwind_names_register(at) && cunwind_register_of(at) == RSP &&
              cunwind_source_of(at) == RBP) ||
             (op == 0x8d && cunwind_source_of(at) == RBP && cunwind_base_of(at) == RSP)) {
    // "mov %rsp,%rbp" (no displacement), or in async functions of Swift "lea 8(%rsp),%rbp", context below the record.
    *now = (distance){.is_set = true,
                      .is_fixed = true,
                      .in_prologue = true,
                      .after_push = true,
                      .bytes = at->displacement,
                      .body = at->displacement,
                      .has_hole = now->has_hole || now->is_set || !now->is_fixed,
                      .above = now->bytes - at->displacement,
                      .saved = now->saved};
  } else if (op == 0x8d && cunwind_source_of(at) == RSP) {
    int base = cunwind_base_of(at);
    if (base == RSP) grow(now, -(int64_t)at->displacement, true);
    else if (base == RBP) now->bytes = -(int64_t)at->displacement;
    else now->is_fixed = false;
  } else if (((op == 0x89 || op == 0x29 || op == 0x01 || op == 0x87) && cunwind_names_register(at) &&
              cunwind_register_of(at) == RSP) ||
             ((op == 0x8b || op == 0x2b || op == 0x03) && cunwind_source_of(at) == RSP)) {
    now->is_fixed = false;
  }
}

// After these, the next instruction is reached only by a jump from a place where the frame is set up.
static bool is_end_of_path(const cunwind_instruction *at) {
  if (at->map == 1) return at->opcode == 0x0b;  // ud2
  return at->map == 0 && (at->opcode == 0xc3 || at->opcode == 0xc2 || at->opcode == 0xe9 || at->opcode == 0xeb ||
                          at->opcode == 0xcc || (at->opcode == 0xff && (at->modrm & 0x38) == 0x20));
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

static void go_on_behind_return(const jumps *jumps, uint64_t address, distance *now) {
  for (unsigned index = 0; index < jumps->count; index++) {
    if (jumps->list[index].target != address) continue;
    now->bytes = jumps->list[index].bytes;
    return;
  }
  now->bytes = now->body;
  now->has_hole = true;
}

static distance follow(cunwind_unwinder *unwinder, uint64_t start, uint64_t pc) {
  distance now = {.is_fixed = true, .in_prologue = true};
  uint8_t code[CUNWIND_LONGEST_INSTRUCTION];
  cunwind_instruction at;
  if (pc - start > FOLLOWED_BYTES) return (distance){.is_set = true};
  jumps jumps = {.count = 0};
  uint64_t moved = 0;  // The last instruction that has moved rsp.
  bool has_called = false;
  for (uint64_t address = start; address < pc; address += at.length) {
    size_t available = pc - address < sizeof code ? (size_t)(pc - address) : sizeof code;
    if (!cunwind_page_cache_read(unwinder->pages, address, code, available) || !cunwind_decode(code, available, &at)) {
      now.is_fixed = false;
      break;
    }
    uint64_t next = address + at.length, target = next + (uint64_t)(int64_t)at.immediate;
    int64_t before = now.bytes;
    if (at.map == 0 && at.opcode == 0xc9) now.bytes = -8;  // leave
    else if (at.map == 0) follow_one_byte(&at, &now);
    else now.after_push = false;
    if (now.bytes != before) moved = address;
    bool is_branch = cunwind_is_jump(&at) || cunwind_is_conditional_jump(&at);
    has_called |= cunwind_is_call_instruction(&at);
    // The loop in a prologue that touches each page of a large frame (-fstack-clash-protection).
    if (is_branch && target <= moved && !has_called) now.is_fixed = false;
    if (is_branch) remember_jump(&jumps, target, address, now.bytes);
    if (is_end_of_path(&at)) go_on_behind_return(&jumps, next, &now);
    if (now.is_set && (cunwind_is_call_instruction(&at) || is_branch || is_end_of_path(&at))) now.in_prologue = false;
  }
  return now;
}

bool cunwind_follow_from_entry(cunwind_unwinder *unwinder, uint64_t start, uint64_t pc, uint64_t *bytes,
                               uint64_t *saved) {
  distance found = follow(unwinder, start, pc);
  *bytes = (uint64_t)(found.bytes + found.above);
  *saved = (uint64_t)found.saved;
  return found.is_fixed && !found.has_hole && found.slack == 0;
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
