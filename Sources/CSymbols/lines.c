// Keeps libdw from parsing a line table that would need more memory than the image may have.

#include <string.h>

#include "image.h"

/// What libdw may allocate for one byte of a line table. A byte makes at most one row (a special opcode), and a row is a
/// list entry of 56 bytes while it is parsed and one of 40 bytes after it (elfutils 0.188, dwarf_getsrclines.c). Compilers
/// need about 3 bytes a row.
#define MEMORY_PER_BYTE 32u

// The bytes of the table that begins at `offset` of .debug_line, by its own header (DWARF 5, 7.4); 0: not known.
static uint64_t table_bytes(csymbols_image *image, uint64_t offset) {
  const csymbols_libdw *libdw = image->libdw;
  Elf_Scn *section = libdw->elf_getscn(image->elf, image->copy.line_section);
  Elf_Data *data = section ? libdw->elf_getdata(section, NULL) : NULL;
  uint32_t length;
  if (!data || !data->d_buf || offset > data->d_size || data->d_size - offset < sizeof length + sizeof(uint64_t))
    return 0;
  memcpy(&length, (const char *)data->d_buf + offset, sizeof length);
  if (length != 0xffffffffu) return length;
  uint64_t long_length;
  memcpy(&long_length, (const char *)data->d_buf + offset + sizeof length, sizeof long_length);
  return long_length;
}

bool csymbols_lines_fit(csymbols_image *image, csymbols_unit *unit) {
  if (unit->lines_counted) return true;
  Dwarf_Attribute attribute;
  Dwarf_Word offset;
  Dwarf_Die root = unit->root;
  if (image->copy.line_section == 0 || !image->libdw->dwarf_attr(&root, DW_AT_stmt_list, &attribute) ||
      image->libdw->dwarf_formudata(&attribute, &offset) != 0)
    return true;  // There is no table, and nothing will be parsed.
  uint64_t bytes = table_bytes(image, offset);
  uint64_t used = csymbols_image_bytes(image);
  if (used > image->maximum_bytes || bytes > (image->maximum_bytes - used) / MEMORY_PER_BYTE) return false;
  image->line_bytes += bytes * MEMORY_PER_BYTE;
  unit->lines_counted = true;
  return true;
}
