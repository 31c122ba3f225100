// The rules that find a function's caller at one PC: the sum of its call frame instructions.

#ifndef CUNWIND_CFI_RULES_H
#define CUNWIND_CFI_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "Machine/registers.h"
#include "Unwinding/eh_frame.h"

/// The place of the caller's value of a register (DWARF 5, section 6.4.1).
typedef enum cunwind_rule_kind {
  CUNWIND_RULE_SAME,             ///< In the register itself; the default.
  CUNWIND_RULE_UNDEFINED,        ///< Nowhere.
  CUNWIND_RULE_OFFSET,           ///< At the CFA plus `offset`.
  CUNWIND_RULE_VALUE_OFFSET,     ///< The value is the CFA plus `offset`.
  CUNWIND_RULE_REGISTER,         ///< In register `offset`.
  CUNWIND_RULE_EXPRESSION,       ///< At the address that an expression computes.
  CUNWIND_RULE_VALUE_EXPRESSION  ///< The value is the result of an expression.
} cunwind_rule_kind;

typedef struct cunwind_rule {
  cunwind_rule_kind kind;
  int64_t offset;
  uint64_t expression, expression_end;
} cunwind_rule;

/// The rules at one PC.
typedef struct cunwind_rules {
  bool
      is_cfa_expression;  ///< The expression in `cfa` computes the canonical frame address; else: register plus offset.
  uint64_t cfa_register;
  cunwind_rule cfa;
  cunwind_rule registers[CUNWIND_REGISTER_COUNT];
  bool has_unread_rule;  ///< A register that is not kept is in another register, or an expression has it.
  bool is_signed;        ///< aarch64: an instruction up to the PC says that the return address is signed, or is not.
} cunwind_rules;

#pragma GCC visibility push(hidden)

/// Runs the instructions of `function` up to `pc`. False: they are damaged, or use unknown operations. Bounded; never
/// faults.
bool cunwind_find_rules(cunwind_page_cache *pages, const cunwind_function *function, uint64_t pc, cunwind_rules *rules);

#pragma GCC visibility pop

#endif
