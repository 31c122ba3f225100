// Where each compilation unit's code is. Swift's and clang's linkers write no .debug_aranges, so the units are asked.

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "image.h"

uint64_t csymbols_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool csymbols_is_over(csymbols_clock *clock) {
  if (!clock->is_over && ++clock->entries % CSYMBOLS_ENTRIES_PER_LOOK == 0)
    clock->is_over = csymbols_now() >= clock->deadline;
  return clock->is_over;
}

static csymbols_unit *add_unit(csymbols_image *image) {
  if (image->unit_count == image->unit_capacity) {
    size_t capacity = image->unit_capacity ? image->unit_capacity * 2 : 64;
    csymbols_unit *units = reallocarray(image->units, capacity, sizeof *units);
    if (!units) return NULL;
    image->units = units;
    image->table_bytes += (capacity - image->unit_capacity) * sizeof *units;
    image->unit_capacity = capacity;
  }
  csymbols_unit *unit = &image->units[image->unit_count++];
  memset(unit, 0, sizeof *unit);
  return unit;
}

static csymbols_status add_ranges(csymbols_image *image, const csymbols_unit *unit, csymbols_clock *clock) {
  Dwarf_Die root = unit->root;
  Dwarf_Addr base, low, high;
  ptrdiff_t offset = 0;
  while ((offset = image->libdw->dwarf_ranges(&root, offset, &base, &low, &high)) > 0) {
    csymbols_status status = csymbols_keep_range(image, &image->unit_ranges, low, high, image->unit_count - 1);
    if (status != CSYMBOLS_OK) return status;
    csymbols_is_over(clock);  // Looked at between units: half a unit is none.
  }
  return CSYMBOLS_OK;
}

// Units that are damaged are passed over: what the others say still holds.
static csymbols_status build(csymbols_image *image, csymbols_clock *clock) {
  const csymbols_libdw *libdw = image->libdw;
  for (;;) {
    if (csymbols_is_over(clock)) return CSYMBOLS_OUT_OF_TIME;
    Dwarf_Off offset = image->next_unit, next;
    size_t header_size;
    if (libdw->dwarf_next_unit(image->dwarf, offset, &next, &header_size, NULL, NULL, NULL, NULL, NULL, NULL) != 0 ||
        next <= offset)
      return CSYMBOLS_OK;
    image->next_unit = next;
    Dwarf_Die root;
    if (!libdw->dwarf_offdie(image->dwarf, offset + header_size, &root)) continue;
    if (libdw->dwarf_tag(&root) != DW_TAG_compile_unit && libdw->dwarf_tag(&root) != DW_TAG_skeleton_unit) continue;
    csymbols_unit *unit = add_unit(image);
    if (!unit) return CSYMBOLS_NO_MEMORY;
    unit->root = root;
    unit->is_split = libdw->dwarf_hasattr(&root, DW_AT_dwo_name) || libdw->dwarf_hasattr(&root, DW_AT_GNU_dwo_name);
    csymbols_status status = add_ranges(image, unit, clock);
    if (status != CSYMBOLS_OK) return status;
  }
}

csymbols_status csymbols_units_build(csymbols_image *image, csymbols_clock *clock) {
  if (image->units_built.is_done) return image->units_built.status;
  csymbols_status status = build(image, clock);
  if (status == CSYMBOLS_OUT_OF_TIME) return status;
  if (status == CSYMBOLS_OK) csymbols_ranges_sort(&image->unit_ranges);
  else csymbols_drop_ranges(image, &image->unit_ranges);
  image->units_built = (csymbols_outcome){true, status};
  return status;
}

// ---- Line tables ------------------------------------------------------------------------------------------------------
// Keeps libdw from parsing a line table that would need more memory than the image may have.

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
