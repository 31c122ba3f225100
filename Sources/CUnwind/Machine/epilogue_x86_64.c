// Finds where a function without call frame information returns to: follows its code forward from PC to a return
// instruction, as the processor would, with the stack pointer and the registers that are restored on the way.

#if defined(__x86_64__)

#include "Machine/instruction_x86_64.h"
#include "Unwinding/unwind.h"

/// The most instructions that are followed. A function's shortest way to its return has some hundreds.
#define FOLLOWED_INSTRUCTIONS 4096u
/// The most conditional jumps on the way.
#define FOLLOWED_JUMPS 128u

// A way through the function that begins behind a conditional jump. Registers that were restored before count as lost.
typedef struct way {
  uint64_t pc, stack_pointer, frame_pointer;
  bool knows_frame_pointer;
} way;

// The ways that have not been followed yet, and the jumps at which they begin.
typedef struct ways {
  way list[FOLLOWED_JUMPS];
  uint64_t jumps[FOLLOWED_JUMPS];
  unsigned count, jump_count;
} ways;

static bool pop(cunwind_unwinder *unwinder, unsigned number, cunwind_registers *now) {
  // By the number in instructions: the others are in the same order in DWARF.
  static const uint8_t dwarf_numbers[8] = {0, 2, 1, 3, CUNWIND_SP, CUNWIND_FP, 4, 5};
  uint64_t value;
  if (number == RSP || !cunwind_stack_copy_read(unwinder->copy, now->value[CUNWIND_SP], &value, sizeof value))
    return false;
  cunwind_set_register(now, number < 8 ? dwarf_numbers[number] : (int)number, value);
  now->value[CUNWIND_SP] += 8;
  return true;
}

// Sets the stack pointer to an address at a distance from the frame pointer.
static bool leave_frame(int64_t distance, cunwind_registers *now) {
  now->value[CUNWIND_SP] = now->value[CUNWIND_FP] + (uint64_t)distance;
  return cunwind_is_known(now, CUNWIND_FP);
}

// Applies the effect of an instruction that is no jump. False: the effect on the stack pointer is not known, or it is an
// instruction of another function's beginning: the way led past a call that does not return.
static bool apply(cunwind_unwinder *unwinder, const cunwind_instruction *at, cunwind_registers *now) {
  enum { ADD = 0, CMP = 7 };
  uint8_t op = at->opcode;
  unsigned low = (op & 7) | (at->rex & 1) << 3, operation = (at->modrm >> 3) & 7;
  bool names_rsp = cunwind_names_register(at) && cunwind_register_of(at) == RSP, to_rsp = cunwind_source_of(at) == RSP;
  uint64_t *stack_pointer = &now->value[CUNWIND_SP];
  if (at->map != 0) return true;
  bool is_to_rbp = (op == 0x8b || op == 0x8d) && cunwind_source_of(at) == RBP;
  bool is_in_rbp = op == 0x89 && cunwind_names_register(at) && cunwind_register_of(at) == RBP;
  if (is_to_rbp || is_in_rbp) now->known &= ~(1ull << CUNWIND_FP);
  if ((op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || (op == 0xff && operation == 6)) {
    *stack_pointer -= 8;
    return op > 0x57 || !cunwind_is_saved_register(low);
  }
  if (op >= 0x58 && op <= 0x5f) return pop(unwinder, low, now);
  if (op == 0xc9) return leave_frame(0, now) && pop(unwinder, RBP, now);
  if ((op == 0x81 || op == 0x83) && names_rsp) {
    if (operation == ADD) *stack_pointer += (uint64_t)(int64_t)at->immediate;
    return operation == CMP || (operation == ADD && at->immediate > 0);
  }
  if ((op == 0x89 && names_rsp && cunwind_source_of(at) == RBP) ||
      (op == 0x8b && to_rsp && cunwind_names_register(at) && cunwind_register_of(at) == RBP))
    return leave_frame(0, now);
  if (op == 0x8d && to_rsp) {
    int base = cunwind_base_of(at);
    if (base == RBP) return leave_frame(at->displacement, now);
    *stack_pointer += (uint64_t)(int64_t)at->displacement;
    return base == RSP && at->displacement > 0;
  }
  bool may_write_operand = op == 0x01 || op == 0x29 || op == 0x21 || op == 0x87 || op == 0x89 || op == 0x8f;
  bool may_write_register = op == 0x03 || op == 0x2b || op == 0x23 || op == 0x8b;
  return !(names_rsp && may_write_operand) && !(to_rsp && may_write_register) && op != 0xc8;
}

static bool is_one_byte(const cunwind_instruction *at, uint8_t opcode) { return at->map == 0 && at->opcode == opcode; }

static bool read_instruction(cunwind_unwinder *unwinder, uint64_t address, cunwind_instruction *at) {
  uint8_t code[CUNWIND_LONGEST_INSTRUCTION];
  size_t length = sizeof code, left = CUNWIND_PAGE_BYTES - address % CUNWIND_PAGE_BYTES;
  if (cunwind_module_of_code(unwinder->modules, address)) {
    if (!cunwind_page_cache_read(unwinder->pages, address, code, length)) {
      if (left >= length || !cunwind_page_cache_read(unwinder->pages, address, code, left)) return false;
      length = left;
    }
  } else {
    // Not from the cache: such code may change.
    length = cunwind_guarded_read(address, code, length);
  }
  return length > 0 && cunwind_decode(code, length, at);
}

// Follows one way to its return, from PC on. False: it ends before, or at a jump where another way has been.
static bool follow(cunwind_unwinder *unwinder, cunwind_registers *now, ways *others, unsigned *left) {
  uint64_t pc = now->value[CUNWIND_PC];
  for (; *left > 0; --*left) {
    cunwind_instruction at;
    if (!read_instruction(unwinder, pc, &at)) return false;
    uint64_t next = pc + at.length, target = next + (uint64_t)(int64_t)at.immediate;
    if (is_one_byte(&at, 0xc3) || is_one_byte(&at, 0xc2)) return true;
    if (cunwind_is_conditional_jump(&at)) {
      for (unsigned index = 0; index < others->jump_count; index++) {
        if (others->jumps[index] == pc) return false;
      }
      if (others->jump_count == FOLLOWED_JUMPS) return false;
      others->jumps[others->jump_count++] = pc;
      // There are no more ways than jumps.
      others->list[others->count++] =
          (way){target, now->value[CUNWIND_SP], now->value[CUNWIND_FP], cunwind_is_known(now, CUNWIND_FP)};
    } else if (cunwind_is_jump(&at)) {
      next = target;
    } else if (is_one_byte(&at, 0xcc) || is_one_byte(&at, 0xf4) || (at.map == 1 && at.opcode == 0x0b) ||
               (is_one_byte(&at, 0xff) && (at.modrm & 0x38) == 0x20)) {
      return false;  // int3, hlt, ud2, and a jump whose target is known only at run time.
    } else if (!apply(unwinder, &at, now)) {
      return false;
    }
    pc = next;
  }
  return false;
}

// Returns whether a return address is at the stack pointer: it follows a call.
static bool is_at_return_address(cunwind_unwinder *unwinder, uint64_t stack_pointer, uint64_t *word) {
  return stack_pointer % 8 == 0 && cunwind_stack_copy_read(unwinder->copy, stack_pointer, word, sizeof *word) &&
         (cunwind_follows_call(unwinder, *word, NULL) || cunwind_follows_call_outside(unwinder, *word));
}

cunwind_step cunwind_step_by_code(cunwind_unwinder *unwinder, const cunwind_registers *from, cunwind_registers *to) {
  ways ways;
  ways.count = ways.jump_count = 0;
  unsigned left = FOLLOWED_INSTRUCTIONS;
  cunwind_registers now = *from;
  // A register that is not restored counts as lost, but for the frame pointer: what changes it restores it.
  now.known &= 1ull << CUNWIND_PC | 1ull << CUNWIND_SP | 1ull << CUNWIND_FP;
  for (;;) {
    uint64_t word;
    if (follow(unwinder, &now, &ways, &left) && now.value[CUNWIND_SP] >= from->value[CUNWIND_SP] &&
        is_at_return_address(unwinder, now.value[CUNWIND_SP], &word)) {
      to->known = 0;
      for (size_t index = 0; index < CUNWIND_KEPT_COUNT; index++) {
        int number = cunwind_kept_registers[index];
        if (cunwind_is_known(&now, number)) cunwind_set_register(to, number, now.value[number]);
      }
      cunwind_set_register(to, CUNWIND_PC, word);
      cunwind_set_register(to, CUNWIND_SP, now.value[CUNWIND_SP] + 8);
      return CUNWIND_STEP_OK;
    }
    if (ways.count == 0) return CUNWIND_STEP_NO_INFO;
    const way *other = &ways.list[--ways.count];
    now.known = 0;
    cunwind_set_register(&now, CUNWIND_PC, other->pc);
    cunwind_set_register(&now, CUNWIND_SP, other->stack_pointer);
    if (other->knows_frame_pointer) cunwind_set_register(&now, CUNWIND_FP, other->frame_pointer);
  }
}

#endif
