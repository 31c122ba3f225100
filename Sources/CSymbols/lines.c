// Keeps libdw from parsing a line table that would need more memory than the image may have.

#include <string.h>

#include "image.h"
#include "line_scan.h"

/// What libdw takes for one row: 104 to 106 bytes measured at its peak (elfutils 0.188: tables of 0.1 to 8 million rows, one
/// byte each), of which 80 stay. A byte of a table makes at most one row, and compilers need about 3 bytes for one.
#define BYTES_PER_ROW 112u
/// What libdw takes for a file beside its path: 76 bytes measured (100,000 files).
#define BYTES_PER_FILE 96u
/// What joining a directory and a name adds: two slashes and the end.
#define BYTES_PER_JOIN 3u

static uint64_t compilation_directory_length(const csymbols_image *image, csymbols_unit *unit) {
  Dwarf_Attribute attribute;
  const char *directory = image->libdw->dwarf_attr(&unit->root, DW_AT_comp_dir, &attribute)
                              ? image->libdw->dwarf_formstring(&attribute)
                              : NULL;
  return directory ? strlen(directory) : 0;
}

/// `*bytes` is what parsing the unit's table takes, at most.
static csymbols_status measure(csymbols_image *image, csymbols_unit *unit, uint64_t *bytes) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset;
  *bytes = 0;
  if (image->copy.line_section == 0 || !image->libdw->dwarf_attr(&unit->root, DW_AT_stmt_list, &attribute) ||
      image->libdw->dwarf_formudata(&attribute, &offset) != 0)
    return CSYMBOLS_OK;  // There is no table, and nothing will be parsed.
  csymbols_line_count count;
  if (!csymbols_line_scan(csymbols_section_bytes(image, image->copy.line_section),
                          csymbols_section_bytes(image, image->copy.string_section),
                          csymbols_section_bytes(image, image->copy.line_string_section), offset, &count))
    return CSYMBOLS_DAMAGED;
  // A name that is relative is put behind its directory, and that behind the unit's, which is a directory of the table or
  // the unit's own. None of the sums can overflow: each counts bytes that are there, or entries of a byte at least.
  uint64_t root = compilation_directory_length(image, unit);
  if (root < count.longest_directory) root = count.longest_directory;
  uint64_t prefix = root + count.longest_directory + BYTES_PER_JOIN;
  if (count.files > 0 && prefix > UINT64_MAX / 2 / count.files) return CSYMBOLS_TOO_LARGE;
  *bytes = count.rows * BYTES_PER_ROW + count.files * BYTES_PER_FILE + count.name_bytes + count.files * prefix;
  return CSYMBOLS_OK;
}

csymbols_status csymbols_lines_admit(csymbols_image *image, csymbols_unit *unit) {
  if (unit->lines_progress == CSYMBOLS_BUILT) return CSYMBOLS_OK;
  if (unit->lines_progress == CSYMBOLS_FAILED) return unit->lines_failure;
  uint64_t bytes, used = csymbols_image_bytes(image);
  csymbols_status status = measure(image, unit, &bytes);
  if (status == CSYMBOLS_OK && (used > image->maximum_bytes || bytes > image->maximum_bytes - used))
    status = CSYMBOLS_TOO_LARGE;
  if (status == CSYMBOLS_OK) image->line_bytes += bytes;
  unit->lines_progress = status == CSYMBOLS_OK ? CSYMBOLS_BUILT : CSYMBOLS_FAILED;
  unit->lines_failure = status;
  return status;
}
