// What is in a unit's line table, counted without parsing it into anything.

#ifndef CSYMBOLS_LINE_SCAN_H
#define CSYMBOLS_LINE_SCAN_H

#include "cursor.h"

/// What a line table holds.
typedef struct csymbols_line_count {
  uint64_t rows;
  uint64_t files;
  uint64_t name_bytes;         ///< Of all files' names, without their directories.
  uint64_t longest_directory;  ///< Bytes of the longest directory's name.
} csymbols_line_count;

#pragma GCC visibility push(hidden)

/// Counts what is in the table that begins at `offset` of `lines` (.debug_line). `strings` is .debug_str and
/// `line_strings` is .debug_line_str. About 3 ns a byte. False when the table is damaged: then nothing may be taken from
/// it, because libdw may see another table there than was counted here.
bool csymbols_line_scan(csymbols_bytes lines, csymbols_bytes strings, csymbols_bytes line_strings, uint64_t offset,
                        csymbols_line_count *count);

#pragma GCC visibility pop

#endif
