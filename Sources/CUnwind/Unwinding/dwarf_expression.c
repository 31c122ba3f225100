// DWARF expressions (version 5, section 2.5), of linkage stubs, functions that realign the stack, and signal frames.

#include <string.h>

#include "Unwinding/cfi.h"
#include "Unwinding/unwind.h"

/// The most values on the expression's stack. Compilers use 4.
#define MAX_DEPTH 16u
/// The most operations that are carried out, because an expression may contain a loop.
#define MAX_OPERATIONS 256u

enum {
  OP_ADDRESS = 0x03,
  OP_DEREF = 0x06,
  OP_CONST1U = 0x08,
  OP_CONSTU = 0x10,
  OP_CONSTS = 0x11,
  OP_DUP = 0x12,
  OP_DROP = 0x13,
  OP_OVER = 0x14,
  OP_PICK = 0x15,
  OP_SWAP = 0x16,
  OP_AND = 0x1a,
  OP_MINUS = 0x1c,
  OP_MUL = 0x1e,
  OP_NEG = 0x1f,
  OP_NOT = 0x20,
  OP_OR = 0x21,
  OP_PLUS = 0x22,
  OP_PLUS_CONST = 0x23,
  OP_SHL = 0x24,
  OP_SHR = 0x25,
  OP_SHRA = 0x26,
  OP_XOR = 0x27,
  OP_BRANCH = 0x28,
  OP_EQ = 0x29,
  OP_GE = 0x2a,
  OP_GT = 0x2b,
  OP_LE = 0x2c,
  OP_LT = 0x2d,
  OP_NE = 0x2e,
  OP_SKIP = 0x2f,
  OP_LIT0 = 0x30,
  OP_LIT31 = 0x4f,
  OP_BREG0 = 0x70,
  OP_BREG31 = 0x8f,
  OP_BREGX = 0x92,
  OP_DEREF_SIZE = 0x94,
  OP_NOP = 0x96,
};

typedef struct machine {
  cunwind_bytes bytes;
  uint64_t values[MAX_DEPTH];
  unsigned depth;
} machine;

static void push(machine *machine, uint64_t value) {
  if (machine->depth == MAX_DEPTH) machine->bytes.has_failed = true;
  else machine->values[machine->depth++] = value;
}

static uint64_t pop(machine *machine) {
  if (machine->depth > 0) return machine->values[--machine->depth];
  machine->bytes.has_failed = true;
  return 0;
}

static uint64_t shift(uint64_t value, uint64_t count, uint8_t operation) {
  if (operation == OP_SHRA) return (uint64_t)((int64_t)value >> (count < 63 ? count : 63));
  if (count > 63) return 0;
  return operation == OP_SHL ? value << count : value >> count;
}

static bool takes_two_values(uint8_t operation) {
  return operation >= OP_AND && operation <= OP_NE && operation != OP_NEG && operation != OP_NOT &&
         operation != OP_PLUS_CONST && operation != OP_BRANCH && operation != 0x1b && operation != 0x1d;
}

static uint64_t combine(uint8_t operation, uint64_t left, uint64_t right) {
  if (operation == OP_AND) return left & right;
  if (operation == OP_MINUS) return left - right;
  if (operation == OP_MUL) return left * right;
  if (operation == OP_OR) return left | right;
  if (operation == OP_PLUS) return left + right;
  if (operation == OP_XOR) return left ^ right;
  if (operation == OP_EQ) return left == right;
  if (operation == OP_GE) return (int64_t)left >= (int64_t)right;
  if (operation == OP_GT) return (int64_t)left > (int64_t)right;
  if (operation == OP_LE) return (int64_t)left <= (int64_t)right;
  if (operation == OP_LT) return (int64_t)left < (int64_t)right;
  if (operation == OP_NE) return left != right;
  return shift(left, right, operation);
}

static uint64_t read_constant(cunwind_bytes *bytes, uint8_t operation) {
  if (operation == OP_CONSTU) return cunwind_read_uleb128(bytes);
  if (operation == OP_CONSTS) return (uint64_t)cunwind_read_sleb128(bytes);
  if (operation == OP_ADDRESS) return cunwind_read_fixed(bytes, 8);
  // 1 unsigned byte, 1 signed byte, 2 unsigned bytes, and so on up to 8.
  unsigned number = (unsigned)(operation - OP_CONST1U), size = 1u << number / 2;
  return number % 2 ? (uint64_t)cunwind_read_signed(bytes, size) : cunwind_read_fixed(bytes, size);
}

static cunwind_step push_register(machine *machine, const cunwind_registers *registers, uint64_t number) {
  uint64_t offset = (uint64_t)cunwind_read_sleb128(&machine->bytes);
  if (number >= CUNWIND_REGISTER_COUNT || !cunwind_is_known(registers, (int)number))
    return CUNWIND_STEP_UNKNOWN_REGISTER;
  push(machine, registers->value[number] + offset);
  return CUNWIND_STEP_OK;
}

static cunwind_step dereference(machine *machine, cunwind_unwinder *unwinder, uint64_t size) {
  uint64_t value = 0, address = pop(machine);
  if (machine->bytes.has_failed || size == 0 || size > sizeof value) return CUNWIND_STEP_NO_INFO;
  if (!cunwind_read(unwinder, address, &value, size)) return CUNWIND_STEP_NO_MEMORY;
  push(machine, value);
  return CUNWIND_STEP_OK;
}

static void jump(machine *machine, uint64_t start, bool is_taken) {
  int64_t offset = (int16_t)cunwind_read_fixed(&machine->bytes, 2);
  if (!is_taken) return;
  uint64_t target = machine->bytes.at + (uint64_t)offset;
  if (target < start || target > machine->bytes.end) machine->bytes.has_failed = true;
  else machine->bytes.at = target;
}

static void arrange(machine *machine, uint8_t operation) {
  uint64_t first = pop(machine);
  if (operation == OP_DROP) return;
  if (operation == OP_SWAP) {
    uint64_t second = pop(machine);
    push(machine, first);
    push(machine, second);
    return;
  }
  push(machine, first);
  uint64_t index = operation == OP_DUP ? 0 : operation == OP_OVER ? 1 : cunwind_read_fixed(&machine->bytes, 1);
  if (index >= machine->depth) machine->bytes.has_failed = true;
  else push(machine, machine->values[machine->depth - 1 - index]);
}

static cunwind_step carry_out(machine *machine, cunwind_unwinder *unwinder, const cunwind_registers *registers,
                              uint64_t start, uint8_t operation) {
  if (operation >= OP_LIT0 && operation <= OP_LIT31) push(machine, operation - (uint64_t)OP_LIT0);
  else if (operation >= OP_BREG0 && operation <= OP_BREG31)
    return push_register(machine, registers, operation - (uint64_t)OP_BREG0);
  else if (operation == OP_BREGX) return push_register(machine, registers, cunwind_read_uleb128(&machine->bytes));
  else if (operation == OP_DEREF) return dereference(machine, unwinder, 8);
  else if (operation == OP_DEREF_SIZE) return dereference(machine, unwinder, cunwind_read_fixed(&machine->bytes, 1));
  else if (operation == OP_ADDRESS || (operation >= OP_CONST1U && operation <= OP_CONSTS))
    push(machine, read_constant(&machine->bytes, operation));
  else if (operation >= OP_DUP && operation <= OP_SWAP) arrange(machine, operation);
  else if (operation == OP_NEG) push(machine, 0 - pop(machine));
  else if (operation == OP_NOT) push(machine, ~pop(machine));
  else if (operation == OP_PLUS_CONST) push(machine, pop(machine) + cunwind_read_uleb128(&machine->bytes));
  else if (operation == OP_SKIP) jump(machine, start, true);
  else if (operation == OP_BRANCH) jump(machine, start, pop(machine) != 0);
  else if (takes_two_values(operation)) {
    uint64_t right = pop(machine), left = pop(machine);
    push(machine, combine(operation, left, right));
  } else if (operation != OP_NOP) return CUNWIND_STEP_NO_INFO;
  return machine->bytes.has_failed ? CUNWIND_STEP_NO_INFO : CUNWIND_STEP_OK;
}

cunwind_step cunwind_evaluate(cunwind_unwinder *unwinder, const cunwind_registers *registers, const uint64_t *first,
                              uint64_t start, uint64_t end, uint64_t *value) {
  machine machine = {.bytes = {.pages = unwinder->pages, .at = start, .end = end}};
  if (first) push(&machine, *first);
  for (unsigned count = 0; machine.bytes.at < end; count++) {
    if (count == MAX_OPERATIONS) return CUNWIND_STEP_NO_INFO;
    uint8_t operation = (uint8_t)cunwind_read_fixed(&machine.bytes, 1);
    cunwind_step step = carry_out(&machine, unwinder, registers, start, operation);
    if (step != CUNWIND_STEP_OK) return step;
  }
  *value = pop(&machine);
  return machine.bytes.has_failed ? CUNWIND_STEP_NO_INFO : CUNWIND_STEP_OK;
}
