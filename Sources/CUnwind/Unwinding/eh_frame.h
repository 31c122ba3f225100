// An image's unwind tables: .eh_frame_hdr leads from a PC to the description of its function in .eh_frame.
//
// The format is DWARF's (version 5, section 6.4), as the Linux Standard Base changes it (core, "Exception Frames").

#ifndef CUNWIND_EH_FRAME_H
#define CUNWIND_EH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "Memory/guarded_memory.h"
#include "Memory/modules.h"

/// Where reading of an image's bytes goes on. After a failure nothing that is read means anything.
typedef struct cunwind_bytes {
  cunwind_page_cache *pages;
  uint64_t at, end;
  bool has_failed;  ///< It met the end, memory that is not there, or an encoding that is not known.
} cunwind_bytes;

/// How one function is unwound: its frame description entry with what that shares with others.
typedef struct cunwind_function {
  uint64_t start, end;                      ///< Addresses of its code.
  uint64_t instructions, instructions_end;  ///< Its call frame instructions.
  uint64_t initial, initial_end;            ///< The instructions that come before those.
  uint64_t code_alignment;                  ///< What an advance of the location is multiplied by.
  int64_t data_alignment;                   ///< What a factored offset is multiplied by.
  uint8_t address_encoding;                 ///< Of addresses in its instructions.
  uint64_t return_register;                 ///< The column that holds the return address.
  bool is_signal_frame;                     ///< The function was interrupted, not called.
} cunwind_function;

#pragma GCC visibility push(hidden)

/// Finds the function around `pc`. False: the image has no table that covers it, or a damaged one. Bounded; never faults.
/// Async-signal-safe: no.
bool cunwind_find_function(const cunwind_modules *modules, cunwind_page_cache *pages, uint64_t pc,
                           cunwind_function *function);

/// Numbers of `size` bytes (1, 2, 4, 8), and of variable length (DWARF 5, 7.6). 0 after a failure.
uint64_t cunwind_read_fixed(cunwind_bytes *from, unsigned size);
uint64_t cunwind_read_uleb128(cunwind_bytes *from);
int64_t cunwind_read_sleb128(cunwind_bytes *from);

/// An address in an encoding of the exception tables (LSB, DW_EH_PE_*): absolute or relative to where it stands.
uint64_t cunwind_read_encoded(cunwind_bytes *from, uint8_t encoding);

#pragma GCC visibility pop

#endif
