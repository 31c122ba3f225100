// Steps by our own evaluation of the rules, over the copied stack.

#include "Unwinding/cfi.h"
#include "Unwinding/unwind.h"

#if defined(__x86_64__)
const uint8_t cunwind_kept_registers[CUNWIND_KEPT_COUNT] = {CUNWIND_FP, 3, 12, 13, 14, 15};
#else
const uint8_t cunwind_kept_registers[CUNWIND_KEPT_COUNT] = {CUNWIND_FP, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
#endif

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

static cunwind_step load(cunwind_unwinder *unwinder, uint64_t address, uint64_t *value) {
  return cunwind_read(unwinder, address, value, sizeof *value) ? CUNWIND_STEP_OK : CUNWIND_STEP_NO_MEMORY;
}

// Finds the caller's value of register `number`.
static cunwind_step apply(cunwind_unwinder *unwinder, const cunwind_registers *from, const cunwind_rules *rules,
                          uint64_t number, uint64_t cfa, uint64_t *value) {
  const cunwind_rule *rule = &rules->registers[number];
  cunwind_step step;
  switch (rule->kind) {
    case CUNWIND_RULE_SAME:
      return take_register(from, number, value);
    case CUNWIND_RULE_OFFSET:
      return load(unwinder, cfa + (uint64_t)rule->offset, value);
    case CUNWIND_RULE_VALUE_OFFSET:
      *value = cfa + (uint64_t)rule->offset;
      return CUNWIND_STEP_OK;
    case CUNWIND_RULE_REGISTER:
      return take_register(from, (uint64_t)rule->offset, value);
    case CUNWIND_RULE_EXPRESSION:
    case CUNWIND_RULE_VALUE_EXPRESSION:
      step = cunwind_evaluate(unwinder, from, &cfa, rule->expression, rule->expression_end, value);
      return step == CUNWIND_STEP_OK && rule->kind == CUNWIND_RULE_EXPRESSION ? load(unwinder, *value, value) : step;
    default:
      return CUNWIND_STEP_UNKNOWN_REGISTER;
  }
}

cunwind_step cunwind_step_by_own_rules(cunwind_unwinder *unwinder, const cunwind_registers *from, bool is_exact,
                                       cunwind_registers *to) {
  // After a call that never returns, the return address may be the start of the next function: use the byte before.
  uint64_t pc = from->value[CUNWIND_PC] - (is_exact ? 0 : 1), cfa, value;
  cunwind_function function;
  cunwind_rules rules;
  if (!cunwind_find_function(unwinder->modules, unwinder->pages, pc, &function) ||
      function.return_register >= CUNWIND_REGISTER_COUNT || !cunwind_find_rules(unwinder->pages, &function, pc, &rules))
    return CUNWIND_STEP_NO_INFO;
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
