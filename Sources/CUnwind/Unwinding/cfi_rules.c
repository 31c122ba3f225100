#include <string.h>

#include "Unwinding/cfi.h"

/// The most states that are remembered at a time. Compilers use one.
#define REMEMBERED_STATES 4u

// DWARF 5, section 7.24, and GNU's additions (LSB core, "DWARF Extensions").
enum {
  OP_ADVANCE = 0x40,
  OP_OFFSET = 0x80,
  OP_RESTORE = 0xc0,
  OP_NOP = 0x00,
  OP_SET_LOCATION = 0x01,
  OP_ADVANCE_1 = 0x02,
  OP_ADVANCE_2 = 0x03,
  OP_ADVANCE_4 = 0x04,
  OP_OFFSET_EXTENDED = 0x05,
  OP_RESTORE_EXTENDED = 0x06,
  OP_UNDEFINED = 0x07,
  OP_SAME_VALUE = 0x08,
  OP_REGISTER = 0x09,
  OP_REMEMBER = 0x0a,
  OP_RESTORE_STATE = 0x0b,
  OP_CFA = 0x0c,
  OP_CFA_REGISTER = 0x0d,
  OP_CFA_OFFSET = 0x0e,
  OP_CFA_EXPRESSION = 0x0f,
  OP_EXPRESSION = 0x10,
  OP_OFFSET_EXTENDED_SIGNED = 0x11,
  OP_CFA_SIGNED = 0x12,
  OP_CFA_OFFSET_SIGNED = 0x13,
  OP_VALUE_OFFSET = 0x14,
  OP_VALUE_OFFSET_SIGNED = 0x15,
  OP_VALUE_EXPRESSION = 0x16,
  OP_NEGATE_RETURN_STATE = 0x2d,  // aarch64: the return address is signed from here on. It is always stripped.
  OP_ARGUMENTS_SIZE = 0x2e,
  OP_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

typedef struct program {
  cunwind_bytes bytes;
  const cunwind_function *function;
  cunwind_rules *rules;
  cunwind_rules initial;  // The first rules, for instructions that restore them.
  cunwind_rules remembered[REMEMBERED_STATES];
  unsigned remembered_count;
} program;

// Reads and ignores rules of registers that are not kept, such as vector registers.
static void set_rule(program *program, uint64_t number, cunwind_rule_kind kind, int64_t offset) {
  if (number < CUNWIND_REGISTER_COUNT) {
    program->rules->registers[number] = (cunwind_rule){.kind = kind, .offset = offset};
  } else if (kind == CUNWIND_RULE_REGISTER) {
    program->rules->has_unread_rule = true;
  }
}

static void restore_rule(program *program, uint64_t number) {
  if (number < CUNWIND_REGISTER_COUNT) program->rules->registers[number] = program->initial.registers[number];
}

static cunwind_rule read_expression(cunwind_bytes *bytes, cunwind_rule_kind kind) {
  uint64_t size = cunwind_read_uleb128(bytes);
  cunwind_rule rule = {.kind = kind, .expression = bytes->at, .expression_end = bytes->at + size};
  if (bytes->has_failed || size > bytes->end - bytes->at) bytes->has_failed = true;
  else bytes->at += size;
  return rule;
}

static void set_expression(program *program, cunwind_rule_kind kind) {
  uint64_t number = cunwind_read_uleb128(&program->bytes);
  cunwind_rule rule = read_expression(&program->bytes, kind);
  if (number < CUNWIND_REGISTER_COUNT) program->rules->registers[number] = rule;
  else program->rules->has_unread_rule = true;
}

static void set_cfa(program *program, uint64_t number, int64_t offset) {
  program->rules->is_cfa_expression = false;
  program->rules->cfa_register = number;
  program->rules->cfa = (cunwind_rule){.offset = offset};
}

static void remember(program *program) {
  if (program->remembered_count == REMEMBERED_STATES) program->bytes.has_failed = true;
  else program->remembered[program->remembered_count++] = *program->rules;
}

static void restore_state(program *program) {
  bool is_signed = program->rules->is_signed;
  if (program->remembered_count == 0) program->bytes.has_failed = true;
  else *program->rules = program->remembered[--program->remembered_count];
  program->rules->is_signed = is_signed;
}

// Unsigned, because a damaged factor may have any value.
static int64_t scale(uint64_t offset, int64_t factor) { return (int64_t)(offset * (uint64_t)factor); }

/// The operand of an instruction that becomes an offset.
typedef enum operand { OPERAND_NONE = 1, OPERAND_PLAIN, OPERAND_FACTORED, OPERAND_SIGNED, OPERAND_NEGATED } operand;

static int64_t read_offset(program *program, operand operand) {
  if (operand == OPERAND_NONE) return 0;
  if (operand == OPERAND_PLAIN) return (int64_t)cunwind_read_uleb128(&program->bytes);
  uint64_t offset = operand == OPERAND_SIGNED ? (uint64_t)cunwind_read_sleb128(&program->bytes)
                                              : cunwind_read_uleb128(&program->bytes);
  return scale(operand == OPERAND_NEGATED ? 0 - offset : offset, program->function->data_alignment);
}

/// The instructions that set a register's rule; `operand` 0: others.
static const struct {
  cunwind_rule_kind kind;
  operand operand;
} rule_instructions[] = {
    [OP_OFFSET_EXTENDED] = {CUNWIND_RULE_OFFSET, OPERAND_FACTORED},
    [OP_OFFSET_EXTENDED_SIGNED] = {CUNWIND_RULE_OFFSET, OPERAND_SIGNED},
    [OP_NEGATIVE_OFFSET_EXTENDED] = {CUNWIND_RULE_OFFSET, OPERAND_NEGATED},
    [OP_VALUE_OFFSET] = {CUNWIND_RULE_VALUE_OFFSET, OPERAND_FACTORED},
    [OP_VALUE_OFFSET_SIGNED] = {CUNWIND_RULE_VALUE_OFFSET, OPERAND_SIGNED},
    [OP_UNDEFINED] = {CUNWIND_RULE_UNDEFINED, OPERAND_NONE},
    [OP_SAME_VALUE] = {CUNWIND_RULE_SAME, OPERAND_NONE},
    [OP_REGISTER] = {CUNWIND_RULE_REGISTER, OPERAND_PLAIN},
};

static void carry_out(program *program, uint8_t operation) {
  cunwind_bytes *bytes = &program->bytes;
  cunwind_rules *rules = program->rules;
  uint64_t number;
  if (operation < sizeof rule_instructions / sizeof *rule_instructions && rule_instructions[operation].operand) {
    number = cunwind_read_uleb128(bytes);
    set_rule(program, number, rule_instructions[operation].kind,
             read_offset(program, rule_instructions[operation].operand));
    return;
  }
  switch (operation) {
    case OP_NOP:
      return;
    case OP_NEGATE_RETURN_STATE:
      rules->is_signed = true;
      return;
    case OP_ARGUMENTS_SIZE:
      cunwind_read_uleb128(bytes);
      return;
    case OP_RESTORE_EXTENDED:
      restore_rule(program, cunwind_read_uleb128(bytes));
      return;
    case OP_EXPRESSION:
      set_expression(program, CUNWIND_RULE_EXPRESSION);
      return;
    case OP_VALUE_EXPRESSION:
      set_expression(program, CUNWIND_RULE_VALUE_EXPRESSION);
      return;
    case OP_REMEMBER:
      remember(program);
      return;
    case OP_RESTORE_STATE:
      restore_state(program);
      return;
    case OP_CFA:
    case OP_CFA_SIGNED:
      number = cunwind_read_uleb128(bytes);
      set_cfa(program, number, read_offset(program, operation == OP_CFA ? OPERAND_PLAIN : OPERAND_SIGNED));
      return;
    case OP_CFA_REGISTER:
      set_cfa(program, cunwind_read_uleb128(bytes), rules->cfa.offset);
      return;
    case OP_CFA_OFFSET:
    case OP_CFA_OFFSET_SIGNED:
      set_cfa(program, rules->cfa_register,
              read_offset(program, operation == OP_CFA_OFFSET ? OPERAND_PLAIN : OPERAND_SIGNED));
      return;
    case OP_CFA_EXPRESSION:
      rules->cfa = read_expression(bytes, CUNWIND_RULE_VALUE_EXPRESSION);
      rules->is_cfa_expression = true;
      return;
    default:
      bytes->has_failed = true;
  }
}

// Advances the location. False: it is another instruction.
static bool advance(program *program, uint8_t operation, uint64_t *location) {
  const cunwind_function *function = program->function;
  uint64_t unit = function->code_alignment;
  if ((operation & 0xc0) == OP_ADVANCE) *location += (operation & 0x3fu) * unit;
  else if (operation == OP_ADVANCE_1) *location += cunwind_read_fixed(&program->bytes, 1) * unit;
  else if (operation == OP_ADVANCE_2) *location += cunwind_read_fixed(&program->bytes, 2) * unit;
  else if (operation == OP_ADVANCE_4) *location += cunwind_read_fixed(&program->bytes, 4) * unit;
  else if (operation == OP_SET_LOCATION)
    *location = function->entries.bias + cunwind_read_encoded(&program->bytes, function->address_encoding);
  else return false;
  return true;
}

// Bounded: each instruction takes at least one byte.
static bool run(program *program, uint64_t start, uint64_t end, uint64_t pc) {
  uint64_t location = program->function->start;
  program->bytes.at = start;
  program->bytes.end = end;
  while (!program->bytes.has_failed && program->bytes.at < end) {
    uint8_t operation = (uint8_t)cunwind_read_fixed(&program->bytes, 1);
    if (advance(program, operation, &location)) {
      if (location > pc) break;
    } else if ((operation & 0xc0) == OP_OFFSET) {
      set_rule(program, operation & 0x3fu, CUNWIND_RULE_OFFSET, read_offset(program, OPERAND_FACTORED));
    } else if ((operation & 0xc0) == OP_RESTORE) {
      restore_rule(program, operation & 0x3fu);
    } else {
      carry_out(program, operation);
    }
  }
  return !program->bytes.has_failed;
}

bool cunwind_find_rules(cunwind_page_cache *pages, const cunwind_function *function, uint64_t pc,
                        cunwind_rules *rules) {
  program program;
  program.bytes = (cunwind_bytes){.pages = pages};
  program.function = function;
  program.rules = rules;
  program.remembered_count = 0;
  memset(rules, 0, sizeof *rules);
  memset(&program.initial, 0, sizeof program.initial);
  if (!run(&program, function->initial, function->initial_end, pc)) return false;
  program.initial = *rules;
  return run(&program, function->instructions, function->instructions_end, pc);
}
