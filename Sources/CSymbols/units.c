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
    unit->offset = offset;
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
