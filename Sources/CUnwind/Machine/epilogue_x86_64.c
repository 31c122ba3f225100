// Finds where a function without call frame information returns to: follows its code forward from PC to a return
// instruction, as the processor would, with the stack pointer and the registers that are restored on the way.

#if defined(__x86_64__)

#include "Machine/instruction_x86_64.h"
#include "Unwinding/unwind.h"

/// The most instructions that are followed. A function's shortest way to its return has some hundreds.
#define FOLLOWED_INSTRUCTIONS 4096u
/// The most conditional jumps on the way.
#define FOLLOWED_JUMPS 128u

// A way through the function that begins at a conditional jump. Registers that were restored before count as lost.
typedef struct way {
  uint64_t jump, pc, stack_pointer, frame_pointer;
  bool knows_frame_pointer;
} way;

typedef struct ways {
  way list[FOLLOWED_JUMPS];
  unsigned count, followed;
  unsigned popped;  // The bytes of arguments that the return takes off the stack.
} ways;

// Pops a register from the stack, as it was at PC. What the way itself has pushed is lower: that register is as it was.
static bool pop(cunwind_unwinder *unwinder, const cunwind_registers *from, unsigned number, cunwind_registers *now) {
  // By the number in instructions: the others are in the same order in DWARF.
  static const uint8_t dwarf_numbers[8] = {0, 2, 1, 3, CUNWIND_SP, CUNWIND_FP, 4, 5};
  int popped = number < 8 ? dwarf_numbers[number] : (int)number;
  uint64_t value = from->value[popped], place = now->value[CUNWIND_SP];
  bool is_known = cunwind_is_known(from, popped);
  if (place >= from->value[CUNWIND_SP]) is_known = cunwind_stack_copy_read(unwinder->copy, place, &value, sizeof value);
  cunwind_set_register(now, popped, value);
  if (!is_known) now->known &= ~(1ull << popped);
  now->value[CUNWIND_SP] = place + 8;
  return number != RSP;
}

// Sets the stack pointer to an address at a distance from the frame pointer.
static bool leave_frame(int64_t distance, cunwind_registers *now) {
  now->value[CUNWIND_SP] = now->value[CUNWIND_FP] + (uint64_t)distance;
  return cunwind_is_known(now, CUNWIND_FP);
}

// Applies the effect of an instruction that is no jump. False: the effect on the stack pointer is not known, or another
// function begins here: the way led past a call that does not return.
static bool apply(cunwind_unwinder *unwinder, const cunwind_registers *from, const cunwind_instruction *at,
                  bool after_call, cunwind_registers *now) {
  enum { ADD = 0, SUB = 5, CMP = 7 };
  uint8_t op = at->opcode;
  unsigned low = (op & 7) | (at->rex & 1) << 3, operation = (at->modrm >> 3) & 7, source = cunwind_source_of(at);
  bool names_register = cunwind_names_register(at), names_rsp = names_register && cunwind_register_of(at) == RSP;
  bool names_rbp = names_register && cunwind_register_of(at) == RBP;
  uint64_t *stack_pointer = &now->value[CUNWIND_SP];
  if (at->map != 0) return true;
  if ((op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || (op == 0xff && operation == 6)) {
    *stack_pointer -= 8;
    return !(after_call && op <= 0x57 && cunwind_is_saved_register(low));
  }
  if (op >= 0x58 && op <= 0x5f) return pop(unwinder, from, low, now);
  if (op == 0x8f) {
    *stack_pointer += 8;
    return !names_rsp;
  }
  if (op == 0xc9) return leave_frame(0, now) && pop(unwinder, from, RBP, now);
  if ((op == 0x81 || op == 0x83) && names_rsp) {
    int64_t change = operation == SUB ? -(int64_t)at->immediate : at->immediate;
    if (operation != CMP) *stack_pointer += (uint64_t)change;
    return operation == CMP || ((operation == ADD || operation == SUB) && (change > 0 || !after_call));
  }
  int base = op == 0x8d ? cunwind_base_of(at) : -1;
  if ((op == 0x89 && names_rsp && source == RBP) || (op == 0x8b && source == RSP && names_rbp))
    return leave_frame(0, now);
  if (op == 0x8d && source == RSP) {
    if (base == RBP) return leave_frame(at->displacement, now);
    *stack_pointer += (uint64_t)(int64_t)at->displacement;
    return base == RSP && (at->displacement > 0 || !after_call);
  }
  if ((op == 0x89 && names_rbp && source == RSP) || (op == 0x8b && source == RBP && names_rsp) ||
      (op == 0x8d && source == RBP && base == RSP)) {
    cunwind_set_register(now, CUNWIND_FP, *stack_pointer + (uint64_t)(int64_t)at->displacement);
    return true;
  }
  if (((op == 0x8b || op == 0x8d) && source == RBP) || (op == 0x89 && names_rbp)) now->known &= ~(1ull << CUNWIND_FP);
  bool may_write_operand = op == 0x01 || op == 0x29 || op == 0x21 || op == 0x87 || op == 0x89;
  bool may_write_register = op == 0x03 || op == 0x2b || op == 0x23 || op == 0x8b;
  return !(names_rsp && may_write_operand) && !(source == RSP && may_write_register) && op != 0xc8;
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

static bool is_nop(const cunwind_instruction *at) {
  return is_one_byte(at, 0x90) || (at->map == 1 && at->opcode == 0x1f);
}

// Follows one way to its return, from PC on. False: it ends before, or at a jump where another way has been.
static bool follow(cunwind_unwinder *unwinder, const cunwind_registers *from, bool after_call, cunwind_registers *now,
                   ways *others, unsigned *left) {
  uint64_t pc = now->value[CUNWIND_PC];
  for (; *left > 0; --*left) {
    cunwind_instruction at;
    if (!read_instruction(unwinder, pc, &at)) return false;
    uint64_t next = pc + at.length, target = next + (uint64_t)(int64_t)at.immediate;
    if (is_one_byte(&at, 0xc3) || is_one_byte(&at, 0xc2)) {
      others->popped = at.opcode == 0xc2 ? (uint16_t)at.immediate : 0;
      return true;
    }
    if (cunwind_is_conditional_jump(&at)) {
      for (unsigned index = 0; index < others->count; index++) {
        if (others->list[index].jump == pc) return false;
      }
      if (others->count == FOLLOWED_JUMPS) return false;
      others->list[others->count++] =
          (way){pc, target, now->value[CUNWIND_SP], now->value[CUNWIND_FP], cunwind_is_known(now, CUNWIND_FP)};
    } else if (cunwind_is_jump(&at)) {
      next = target;
    } else if (is_one_byte(&at, 0xcc) || is_one_byte(&at, 0xf4) || (at.map == 1 && at.opcode == 0x0b) ||
               (is_one_byte(&at, 0xff) && (at.modrm & 0x38) == 0x20)) {
      return false;  // int3, hlt, ud2, and a jump whose target is known only at run time.
    } else if (!apply(unwinder, from, &at, after_call, now)) {
      return false;
    }
    if (!is_nop(&at)) after_call = cunwind_is_call_instruction(&at);
    pc = next;
  }
  return false;
}

// Returns whether a return address is at the stack pointer: it follows a call, or the kernel has called a signal handler.
static bool is_at_return_address(cunwind_unwinder *unwinder, uint64_t stack_pointer, uint64_t *word) {
  return stack_pointer % 8 == 0 && cunwind_stack_copy_read(unwinder->copy, stack_pointer, word, sizeof *word) &&
         (cunwind_follows_call(unwinder, *word, NULL) || cunwind_follows_call_outside(unwinder, *word) ||
          cunwind_is_signal_return(unwinder, *word));
}

cunwind_step cunwind_step_by_code(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                  cunwind_registers *to) {
  ways ways;
  ways.count = ways.followed = 0;
  unsigned left = FOLLOWED_INSTRUCTIONS;
  cunwind_registers now = *from;
  // A register that is not restored counts as lost, but for the frame pointer: what changes it restores it.
  now.known &= 1ull << CUNWIND_PC | 1ull << CUNWIND_SP | 1ull << CUNWIND_FP;
  // A function that calls another has something on its stack, because that is aligned then (psABI 3.2.2). A way that takes
  // nothing off leads through the next function: the call does not return.
  uint64_t least = from->value[CUNWIND_SP] + (is_exact ? 0 : 8);
  for (bool after_call = !is_exact;; after_call = false) {
    uint64_t word;
    if (follow(unwinder, from, after_call, &now, &ways, &left) && now.value[CUNWIND_SP] >= least &&
        is_at_return_address(unwinder, now.value[CUNWIND_SP], &word)) {
      to->known = 0;
      for (size_t index = 0; index < CUNWIND_KEPT_COUNT; index++) {
        int number = cunwind_kept_registers[index];
        if (cunwind_is_known(&now, number)) cunwind_set_register(to, number, now.value[number]);
      }
      cunwind_set_register(to, CUNWIND_PC, word);
      cunwind_set_register(to, CUNWIND_SP, now.value[CUNWIND_SP] + 8 + ways.popped);
      return CUNWIND_STEP_OK;
    }
    if (ways.followed == ways.count) return CUNWIND_STEP_NO_INFO;
    const way *other = &ways.list[ways.followed++];
    now.known = 0;
    cunwind_set_register(&now, CUNWIND_PC, other->pc);
    cunwind_set_register(&now, CUNWIND_SP, other->stack_pointer);
    if (other->knows_frame_pointer) cunwind_set_register(&now, CUNWIND_FP, other->frame_pointer);
  }
}

#endif
