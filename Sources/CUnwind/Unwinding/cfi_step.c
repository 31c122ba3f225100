// The step by call frame information: by our own evaluation of the rules, or by libunwind; and the choice between them.

#include <string.h>

#include "Unwinding/cfi.h"
#include "Unwinding/unwind.h"

// Finds the function of a PC and its rules there; false if there is none whose return address can be found.
static bool find_rules(cunwind_unwinder *unwinder, uint64_t pc, cunwind_function *function, cunwind_rules *rules) {
  return cunwind_find_function(unwinder->modules, unwinder->pages, pc, function) &&
         function->return_register < CUNWIND_REGISTER_COUNT && cunwind_find_rules(unwinder->pages, function, pc, rules);
}

static cunwind_step find_cfa(cunwind_unwinder *unwinder, const cunwind_registers *from, const cunwind_rules *rules,
                             uint64_t *cfa) {
  if (rules->is_cfa_expression) {
    return cunwind_evaluate(unwinder, from, NULL, rules->cfa.expression, rules->cfa.expression_end, cfa);
  }
  if (rules->cfa_register >= CUNWIND_REGISTER_COUNT) return CUNWIND_STEP_NO_INFO;
  if (!cunwind_is_known(from, (int)rules->cfa_register)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  *cfa = from->value[rules->cfa_register] + (uint64_t)rules->cfa.offset;
  return CUNWIND_STEP_OK;
}

static cunwind_step take_register(const cunwind_registers *from, uint64_t number, uint64_t *value) {
  if (number >= CUNWIND_REGISTER_COUNT || !cunwind_is_known(from, (int)number)) return CUNWIND_STEP_UNKNOWN_REGISTER;
  *value = from->value[number];
  return CUNWIND_STEP_OK;
}

static bool has_expression(const cunwind_rule *rule) {
  return rule->kind == CUNWIND_RULE_EXPRESSION || rule->kind == CUNWIND_RULE_VALUE_EXPRESSION;
}

static cunwind_step load(cunwind_unwinder *unwinder, uint64_t address, uint64_t *value) {
  return cunwind_read(unwinder, address, value, sizeof *value) ? CUNWIND_STEP_OK : CUNWIND_STEP_NO_MEMORY;
}

static cunwind_step apply(cunwind_unwinder *unwinder, const cunwind_registers *from, const cunwind_rules *rules,
                          uint64_t number, uint64_t cfa, uint64_t *value) {
  const cunwind_rule *rule = &rules->registers[number];
  if (rule->kind == CUNWIND_RULE_SAME) return take_register(from, number, value);
  if (rule->kind == CUNWIND_RULE_REGISTER) return take_register(from, (uint64_t)rule->offset, value);
  if (rule->kind == CUNWIND_RULE_UNDEFINED) return CUNWIND_STEP_UNKNOWN_REGISTER;
  cunwind_step step = CUNWIND_STEP_OK;
  if (!has_expression(rule)) *value = cfa + (uint64_t)rule->offset;
  else step = cunwind_evaluate(unwinder, from, &cfa, rule->expression, rule->expression_end, value);
  bool is_stored = rule->kind == CUNWIND_RULE_OFFSET || rule->kind == CUNWIND_RULE_EXPRESSION;
  return step == CUNWIND_STEP_OK && is_stored ? load(unwinder, *value, value) : step;
}

cunwind_step cunwind_step_by_own_rules(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to) {
  // After a call that never returns, the return address may be the start of the next function: use the byte before.
  uint64_t pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1), cfa, value;
  cunwind_function function;
  cunwind_rules rules;
  if (!find_rules(unwinder, pc, &function, &rules)) return CUNWIND_STEP_NO_INFO;
  // An undefined return address marks the first function of a thread.
  if (rules.registers[function.return_register].kind == CUNWIND_RULE_UNDEFINED) return CUNWIND_STEP_OUTERMOST;
  unwinder->failure = CUNWIND_END_COMPLETE;
  // The rules see the PC for which they were found.
  cunwind_registers found = *from;
  found.value[CUNWIND_PC] = pc;
  from = &found;
  cunwind_step result = find_cfa(unwinder, from, &rules, &cfa);
  if (result != CUNWIND_STEP_OK) return result;
  result = apply(unwinder, from, &rules, function.return_register, cfa, &value);
  if (result != CUNWIND_STEP_OK) return result;
  to->known = 0;
  cunwind_set_register(to, CUNWIND_PC, cunwind_strip(value));
  // The CFA is the caller's stack pointer, unless a rule says otherwise.
  if (rules.registers[CUNWIND_SP].kind == CUNWIND_RULE_SAME) value = cfa;
  else if ((result = apply(unwinder, from, &rules, CUNWIND_SP, cfa, &value)) != CUNWIND_STEP_OK) return result;
  cunwind_set_register(to, CUNWIND_SP, value);
  // If a register is not found, it is unknown further out. Most frames do not need it.
  for (size_t index = 0; index < CUNWIND_KEPT_COUNT; index++) {
    int number = cunwind_kept_registers[index];
    if (apply(unwinder, from, &rules, (uint64_t)number, cfa, &value) == CUNWIND_STEP_OK) {
      cunwind_set_register(to, number, value);
    }
  }
  return CUNWIND_STEP_OK;
}

// ---- Both steppers --------------------------------------------------------------------------------------------------

/// The longest expression that another stepper gets, in bytes. Compilers write up to 20.
#define LONGEST_EXPRESSION 64u
// DW_OP_bra, DW_OP_skip: with jumps an expression may never end.
enum { OP_BRANCH = 0x28, OP_SKIP = 0x2f };

// Refuses jumps, also where a byte only looks like one: ours counts the operations of an expression.
static bool has_no_jumps(cunwind_unwinder *unwinder, const cunwind_rule *rule) {
  uint8_t bytes[LONGEST_EXPRESSION];
  uint64_t size = rule->expression_end - rule->expression;
  if (size > sizeof bytes || !cunwind_page_cache_read(unwinder->pages, rule->expression, bytes, size)) return false;
  return !memchr(bytes, OP_BRANCH, size) && !memchr(bytes, OP_SKIP, size);
}

static bool is_harmless(cunwind_unwinder *unwinder, const cunwind_rule *rule) {
  if (rule->kind == CUNWIND_RULE_REGISTER) return (uint64_t)rule->offset < CUNWIND_REGISTER_COUNT;
  return !has_expression(rule) || has_no_jumps(unwinder, rule);
}

static cunwind_stepper choose_stepper(cunwind_unwinder *unwinder, uint64_t pc) {
  cunwind_function function;
  cunwind_rules rules;
  if (!find_rules(unwinder, pc, &function, &rules)) return CUNWIND_PC_REFUSED;
  if (rules.registers[function.return_register].kind == CUNWIND_RULE_UNDEFINED) return CUNWIND_PC_OUTERMOST;
  // libunwind reads the frames of signals by itself, as the walk does. It ignores a rule for the stack pointer, which
  // setcontext(3), longjmp(3) and some assembly code of libcrypto have.
  // It reads rules of registers that are not kept: on aarch64 one of them led it out of its memory. Before 1.8.2 it does
  // not know that return addresses are signed: it gives up, and guesses by the frame pointer.
  // It does not get .debug_frame.
  if (function.entries.is_debug_frame || function.is_signal_frame || rules.has_unread_rule || rules.is_signed ||
      rules.registers[CUNWIND_SP].kind != CUNWIND_RULE_SAME)
    return CUNWIND_PC_OWN;
  bool is_safe =
      rules.is_cfa_expression ? has_no_jumps(unwinder, &rules.cfa) : rules.cfa_register < CUNWIND_REGISTER_COUNT;
  for (int number = 0; is_safe && number < CUNWIND_REGISTER_COUNT; number++) {
    is_safe = is_harmless(unwinder, &rules.registers[number]);
  }
  return is_safe ? CUNWIND_PC_ANY : CUNWIND_PC_OWN;
}

cunwind_stepper cunwind_stepper_for(cunwind_unwinder *unwinder, uint64_t pc) {
  // Fibonacci hashing, as in the page cache.
  cunwind_known_pc *known = &unwinder->known_pcs[((pc * 0x9e3779b97f4a7c15ull) >> 32) % CUNWIND_KNOWN_PCS];
  if (known->pc != pc || pc == 0) {
    known->stepper = choose_stepper(unwinder, pc);
    // For a function without an entry a .debug_frame may come.
    known->pc = known->stepper == CUNWIND_PC_REFUSED ? 0 : pc;
  }
  return known->stepper;
}

bool cunwind_registers_are_same(const cunwind_registers *left, const cunwind_registers *right) {
  if (left->known != right->known) return false;
  for (int number = 0; number < CUNWIND_REGISTER_COUNT; number++) {
    if (cunwind_is_known(left, number) && left->value[number] != right->value[number]) return false;
  }
  return true;
}

cunwind_step cunwind_step_by_cfi(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                 cunwind_registers *to) {
  if (!unwinder->library) return cunwind_step_by_own_rules(unwinder, from, is_exact, to);
  unwinder->failure = CUNWIND_END_COMPLETE;
  cunwind_stepper stepper = cunwind_stepper_for(unwinder, from->value[CUNWIND_PC] - (is_exact ? 0 : 1));
  if (stepper == CUNWIND_PC_REFUSED) return CUNWIND_STEP_NO_INFO;
  if (stepper == CUNWIND_PC_OUTERMOST) return CUNWIND_STEP_OUTERMOST;
  if (stepper == CUNWIND_PC_ANY && cunwind_step_by_library(unwinder, from, is_exact, to) == CUNWIND_STEP_OK)
    return CUNWIND_STEP_OK;
  cunwind_step step = cunwind_step_by_own_rules(unwinder, from, is_exact, to);
  if (step == CUNWIND_STEP_OK && stepper == CUNWIND_PC_ANY) unwinder->stood_in++;
  return step;
}

void cunwind_unwinder_flush(cunwind_unwinder *unwinder) {
  memset(unwinder->known_pcs, 0, sizeof unwinder->known_pcs);
  memset(unwinder->only_calls, 0, sizeof unwinder->only_calls);
  if (unwinder->library) cunwind_library_flush(unwinder->library);
}
