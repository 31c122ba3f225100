// Call frame information: an image's unwind tables, in which .eh_frame_hdr leads from a PC to the description of its
// function in .eh_frame, and the rules that find a function's caller at one PC: the sum of its instructions there.
// Functions that are not in these tables may be in .debug_frame, which is only in the file.
//
// The format is DWARF's (version 5, section 6.4), as the Linux Standard Base changes it (core, "Exception Frames").

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "Machine/registers.h"
#include "Memory/guarded_memory.h"
#include "Memory/modules.h"

/// A position in an image's bytes. After a failure, all values that are read are meaningless.
typedef struct cunwind_bytes {
  cunwind_page_cache *pages;
  uint64_t at, end;
  bool has_failed;  ///< It reached the end, unmapped memory, or an unknown encoding.
} cunwind_bytes;

/// The memory with an image's entries, and their format.
typedef struct cunwind_entries {
  uint64_t low, high;
  uint64_t bias;        ///< What is added to the addresses in them.
  bool is_debug_frame;  ///< DWARF's own format, without the changes of the Linux Standard Base.
} cunwind_entries;

/// The unwind information of one function: its frame description entry, and the common entry that it refers to.
typedef struct cunwind_function {
  uint64_t start, end;                      ///< The range of its code.
  uint64_t instructions, instructions_end;  ///< Its call frame instructions.
  uint64_t initial, initial_end;            ///< The instructions of the common entry, which come first.
  uint64_t code_alignment;                  ///< The factor of location advances.
  int64_t data_alignment;                   ///< The factor of factored offsets.
  uint8_t address_encoding;                 ///< The encoding of addresses in the instructions.
  cunwind_entries entries;                  ///< Where its entry is.
  uint64_t return_register;                 ///< The column that holds the return address.
  bool is_signal_frame;                     ///< The function was interrupted, not called.
} cunwind_function;

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

typedef struct cunwind_rules {
  bool is_cfa_expression;  ///< The expression in `cfa` computes the canonical frame address; else register plus offset.
  uint64_t cfa_register;
  cunwind_rule cfa;
  cunwind_rule registers[CUNWIND_REGISTER_COUNT];
  bool has_unread_rule;  ///< A register that is not kept is in another register, or an expression has it.
  bool is_signed;        ///< aarch64: an instruction up to the PC says that the return address is signed, or is not.
} cunwind_rules;

#pragma GCC visibility push(hidden)

/// Finds the function that contains `pc`. False: no table covers it, or it is damaged. Bounded; never faults.
bool cunwind_find_function(const cunwind_modules *modules, cunwind_page_cache *pages, uint64_t pc,
                           cunwind_function *function);

/// Finds the function that contains `pc` in the image's .debug_frame. Returns its entry's address; 0: none, or several.
uint64_t cunwind_search_debug_frame(const cunwind_module *module, uint64_t pc, cunwind_entries *entries);

/// Returns where the last function begins that has an entry and begins at `pc` or before; 0: there is none.
uint64_t cunwind_start_before(const cunwind_modules *modules, cunwind_page_cache *pages, uint64_t pc);

/// Runs the instructions of `function` up to `pc`. False: they are damaged or unknown. Bounded; never faults.
bool cunwind_find_rules(cunwind_page_cache *pages, const cunwind_function *function, uint64_t pc, cunwind_rules *rules);

/// Read numbers of `size` bytes (1, 2, 4, 8), and of variable length (DWARF 5, 7.6). 0 after a failure.
uint64_t cunwind_read_fixed(cunwind_bytes *from, unsigned size);
int64_t cunwind_read_signed(cunwind_bytes *from, unsigned size);
uint64_t cunwind_read_uleb128(cunwind_bytes *from);
int64_t cunwind_read_sleb128(cunwind_bytes *from);

/// Reads an address in an encoding of the exception tables (LSB, DW_EH_PE_*): absolute, or relative to its own place.
uint64_t cunwind_read_encoded(cunwind_bytes *from, uint8_t encoding);

#pragma GCC visibility pop
