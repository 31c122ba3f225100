// Keeps libdw from parsing a line table that would need more memory than the image may have.

#include <string.h>

#include "image.h"

/// The most memory that libdw takes for a byte of a line table.
///
/// A byte makes at most one row, and libdw takes 104 to 106 bytes for a row (measured at its peak, elfutils 0.188, tables of
/// 0.1 to 8 million rows). An entry of the file list needs less for each of its bytes. Compilers write about three bytes per
/// row, so a real table takes a third of this.
#define MEMORY_PER_BYTE 112u
/// A first word that says that a length of 64 bits follows (DWARF 5, 7.4).
#define WIDE_LENGTH 0xffffffffu

/// Stores the most memory that libdw takes to parse the unit's table in `*bytes`.
static csymbols_status measure(csymbols_image *image, csymbols_unit *unit, uint64_t *bytes) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset;
  *bytes = 0;
  if (image->copy.line_section == 0 || !image->libdw->dwarf_attr(&unit->root, DW_AT_stmt_list, &attribute) ||
      image->libdw->dwarf_formudata(&attribute, &offset) != 0)
    return CSYMBOLS_OK;  // There is no table, and nothing will be parsed.
  Elf_Scn *section = image->libdw->elf_getscn(image->elf, image->copy.line_section);
  Elf_Data *data = section ? image->libdw->elf_getdata(section, NULL) : NULL;
  uint32_t word;
  uint64_t length;
  if (!data || !data->d_buf || offset > data->d_size || data->d_size - offset < sizeof word + sizeof length)
    return CSYMBOLS_DAMAGED;
  const char *table = (const char *)data->d_buf + offset;
  memcpy(&word, table, sizeof word);  // Little-endian, as both supported architectures are.
  memcpy(&length, table + sizeof word, sizeof length);
  if (word != WIDE_LENGTH) length = word;
  if (length > data->d_size - offset) return CSYMBOLS_DAMAGED;
  *bytes = length * MEMORY_PER_BYTE;
  return CSYMBOLS_OK;
}

csymbols_status csymbols_lines_admit(csymbols_image *image, csymbols_unit *unit) {
  if (unit->lines_admitted.is_done) return unit->lines_admitted.status;
  uint64_t bytes, used = csymbols_image_bytes(image);
  csymbols_status status = measure(image, unit, &bytes);
  if (status == CSYMBOLS_OK && (used > image->maximum_bytes || bytes > image->maximum_bytes - used))
    status = CSYMBOLS_TOO_LARGE;
  if (status == CSYMBOLS_OK && bytes > 0 && !csymbols_has_room(bytes)) status = CSYMBOLS_NO_MEMORY;
  if (status == CSYMBOLS_OK) image->line_bytes += bytes;
  unit->lines_admitted = (csymbols_outcome){true, status};
  return status;
}
