// Walks a line table (DWARF 2 to 5; DWARF 5, 6.2) and counts. Reads nothing outside the table's own bytes.

#include "line_scan.h"

#include <dwarf.h>
#include <string.h>

/// Pairs of what and how in a DWARF 5 table's description of its entries. Five kinds of content are defined.
#define MAX_FORMATS 16u

static uint64_t length_in(csymbols_cursor *from, csymbols_bytes section) {
  uint64_t offset = csymbols_read_offset(from);
  if (offset < section.size) return strnlen((const char *)section.start + offset, section.size - offset);
  from->has_failed = true;
  return 0;
}

/// Steps over one field of an entry; the length of the string that it is, or 0.
static uint64_t read_form(csymbols_cursor *from, uint64_t form, csymbols_bytes strings, csymbols_bytes line_strings) {
  switch (form) {
    case DW_FORM_string:
      return csymbols_read_string(from);
    case DW_FORM_strp:
      return length_in(from, strings);
    case DW_FORM_line_strp:
      return length_in(from, line_strings);
    case DW_FORM_udata:
      return csymbols_read_leb128(from), 0;
    case DW_FORM_data1:
      return csymbols_skip(from, 1), 0;
    case DW_FORM_data2:
      return csymbols_skip(from, 2), 0;
    case DW_FORM_data4:
      return csymbols_skip(from, 4), 0;
    case DW_FORM_data8:
      return csymbols_skip(from, 8), 0;
    case DW_FORM_data16:
      return csymbols_skip(from, 16), 0;
    case DW_FORM_block:
      return csymbols_skip(from, csymbols_read_leb128(from)), 0;
    default:
      return from->has_failed = true, 0;
  }
}

/// A list of DWARF 5: of directories, then of files. Returns how many entries there are.
static uint64_t read_list(csymbols_cursor *from, csymbols_bytes strings, csymbols_bytes line_strings, uint64_t *total,
                          uint64_t *longest) {
  uint64_t kinds[MAX_FORMATS], forms[MAX_FORMATS];
  uint64_t formats = csymbols_read_fixed(from, 1);
  if (formats > MAX_FORMATS) from->has_failed = true;
  for (uint64_t index = 0; index < formats && !from->has_failed; index++) {
    kinds[index] = csymbols_read_leb128(from);
    forms[index] = csymbols_read_leb128(from);
  }
  uint64_t entries = csymbols_read_leb128(from);
  // An entry of no bytes could be repeated for ever.
  if (formats == 0 && entries > 0) from->has_failed = true;
  *total = *longest = 0;
  for (uint64_t entry = 0; entry < entries && !from->has_failed; entry++) {
    for (uint64_t index = 0; index < formats && !from->has_failed; index++) {
      uint64_t length = read_form(from, forms[index], strings, line_strings);
      if (kinds[index] != DW_LNCT_path) continue;
      *total += length;
      if (length > *longest) *longest = length;
    }
  }
  return entries;
}

/// The lists of DWARF 2 to 4, which end with an empty name each.
static void read_old_lists(csymbols_cursor *from, csymbols_line_count *count) {
  for (uint64_t length; !from->has_failed && (length = csymbols_read_string(from)) > 0;)
    if (length > count->longest_directory) count->longest_directory = length;
  for (uint64_t length; !from->has_failed && (length = csymbols_read_string(from)) > 0;) {
    for (unsigned field = 0; field < 3; field++) csymbols_read_leb128(from);
    count->name_bytes += length;
    count->files++;
  }
}

static void read_extended(csymbols_cursor *from, csymbols_line_count *count) {
  uint64_t length = csymbols_read_leb128(from);
  if (from->has_failed || length == 0 || length > (uint64_t)(from->end - from->at)) {
    from->has_failed = true;
    return;
  }
  if (*from->at == DW_LNE_end_sequence) {
    count->rows++;
  } else if (*from->at == DW_LNE_define_file) {
    count->files++;
    count->name_bytes += length;
  }
  from->at += length;
}

static void read_program(csymbols_cursor *from, const uint8_t *operands, unsigned first_special,
                         csymbols_line_count *count) {
  while (from->at < from->end && !from->has_failed) {
    unsigned opcode = *from->at++;
    if (opcode >= first_special || opcode == DW_LNS_copy) {
      count->rows++;
    } else if (opcode == 0) {
      read_extended(from, count);
    } else if (opcode == DW_LNS_fixed_advance_pc) {
      csymbols_skip(from, 2);
    } else {
      for (unsigned operand = operands[opcode]; operand > 0 && !from->has_failed; operand--) csymbols_read_leb128(from);
    }
  }
}

bool csymbols_line_scan(csymbols_bytes lines, csymbols_bytes strings, csymbols_bytes line_strings, uint64_t offset,
                        csymbols_line_count *count) {
  *count = (csymbols_line_count){0};
  if (offset > lines.size) return false;
  csymbols_cursor from = {.at = lines.start + offset, .end = lines.start + lines.size};
  uint64_t length = csymbols_read_fixed(&from, 4);
  if (length == 0xffffffffu) {
    from.is_wide = true;
    length = csymbols_read_fixed(&from, 8);
  }
  if (from.has_failed || length > (uint64_t)(from.end - from.at)) return false;
  from.end = from.at + length;
  uint64_t version = csymbols_read_fixed(&from, 2);
  if (version < 2 || version > 5) return false;
  if (version == 5) csymbols_skip(&from, 2);  // Sizes of an address and of a segment.
  uint64_t header_length = csymbols_read_offset(&from);
  if (from.has_failed || header_length > (uint64_t)(from.end - from.at)) return false;
  csymbols_cursor program = from;
  program.at += header_length;

  // Length of an instruction, operations in one, default_is_stmt, line_base, line_range.
  csymbols_skip(&from, version >= 4 ? 5 : 4);
  unsigned first_special = (unsigned)csymbols_read_fixed(&from, 1);
  uint8_t operands[256] = {0};
  for (unsigned opcode = 1; opcode < first_special; opcode++) operands[opcode] = (uint8_t)csymbols_read_fixed(&from, 1);
  if (version < 5) {
    read_old_lists(&from, count);
  } else {
    uint64_t ignored;
    read_list(&from, strings, line_strings, &ignored, &count->longest_directory);
    count->files = read_list(&from, strings, line_strings, &count->name_bytes, &ignored);
  }
  if (from.has_failed) return false;
  read_program(&program, operands, first_special, count);
  return !program.has_failed;
}
