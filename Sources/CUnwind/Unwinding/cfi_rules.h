// How a function's caller is found at one PC: the rules that its call frame instructions add up to.

#ifndef CUNWIND_CFI_RULES_H
#define CUNWIND_CFI_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "Machine/registers.h"
#include "Unwinding/eh_frame.h"

/// Where the caller's value of a register is (DWARF 5, section 6.4.1).
typedef enum cunwind_rule_kind {
  CUNWIND_RULE_SAME,             ///< In the register, as no rule says otherwise.
  CUNWIND_RULE_UNDEFINED,        ///< Nowhere.
  CUNWIND_RULE_OFFSET,           ///< At the CFA plus `offset`.
  CUNWIND_RULE_VALUE_OFFSET,     ///< It is the CFA plus `offset`.
  CUNWIND_RULE_REGISTER,         ///< In register `offset`.
  CUNWIND_RULE_EXPRESSION,       ///< At the address that an expression gives.
  CUNWIND_RULE_VALUE_EXPRESSION  ///< It is what an expression gives.
} cunwind_rule_kind;

typedef struct cunwind_rule {
  cunwind_rule_kind kind;
  int64_t offset;
  uint64_t expression, expression_end;
} cunwind_rule;

/// The rules at one PC.
typedef struct cunwind_rules {
  bool
      is_cfa_expression;  ///< The canonical frame address is what `cfa`'s expression gives; else a register plus an offset.
  uint64_t cfa_register;
  cunwind_rule cfa;
  cunwind_rule registers[CUNWIND_REGISTER_COUNT];
} cunwind_rules;

#pragma GCC visibility push(hidden)

/// Carries out the instructions of `function` up to `pc`. False: they are damaged, or use what is not known. Bounded; never
/// faults. Async-signal-safe: no.
bool cunwind_find_rules(cunwind_page_cache *pages, const cunwind_function *function, uint64_t pc, cunwind_rules *rules);

#pragma GCC visibility pop

#endif
