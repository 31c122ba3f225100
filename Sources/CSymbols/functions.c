// Where each function of a unit is, and which functions were inlined into it.

#include "entry_scan.h"

static csymbols_status add_function(csymbols_image *image, csymbols_unit *unit, Dwarf_Die *function,
                                    csymbols_clock *clock) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Addr base, low, high;
  ptrdiff_t offset = 0;
  while ((offset = libdw->dwarf_ranges(function, offset, &base, &low, &high)) > 0) {
    csymbols_status status = csymbols_keep_range(image, &unit->functions, low, high, libdw->dwarf_dieoffset(function));
    if (status != CSYMBOLS_OK) return status;
    if (csymbols_is_over(clock)) return CSYMBOLS_OUT_OF_TIME;
  }
  return CSYMBOLS_OK;
}

static csymbols_status collect(csymbols_image *image, csymbols_unit *unit, csymbols_entry_scan *scan,
                               csymbols_clock *clock) {
  uint64_t offset;
  while (csymbols_entry_scan_next(scan, clock, &offset)) {
    Dwarf_Die function;
    if (!image->libdw->dwarf_offdie(image->dwarf, offset, &function)) continue;
    csymbols_status status = add_function(image, unit, &function, clock);
    if (status != CSYMBOLS_OK) return status;
  }
  return clock->is_over ? CSYMBOLS_OUT_OF_TIME : CSYMBOLS_OK;
}

static csymbols_status build(csymbols_image *image, csymbols_unit *unit, csymbols_clock *clock) {
  csymbols_entry_scan scan;
  csymbols_status status = csymbols_entry_scan_begin(&scan, image, unit, clock);
  if (status == CSYMBOLS_OK) status = collect(image, unit, &scan, clock);
  csymbols_entry_scan_end(&scan);
  return status;
}

csymbols_status csymbols_functions_build(csymbols_image *image, csymbols_unit *unit, csymbols_clock *clock) {
  if (unit->progress == CSYMBOLS_BUILT) return CSYMBOLS_OK;
  if (unit->progress == CSYMBOLS_FAILED) return unit->failure;
  csymbols_status status = build(image, unit, clock);
  if (status == CSYMBOLS_OK) {
    csymbols_ranges_sort(&unit->functions);
    unit->progress = CSYMBOLS_BUILT;
    return status;
  }
  csymbols_drop_ranges(image, &unit->functions);
  if (status != CSYMBOLS_OUT_OF_TIME) {
    unit->progress = CSYMBOLS_FAILED;
    unit->failure = status;
  }
  return status;
}

// Steps to the next sibling, which in debug information that is not damaged lies further on.
static bool advance(const csymbols_libdw *libdw, Dwarf_Die *entry) {
  Dwarf_Off before = libdw->dwarf_dieoffset(entry);
  Dwarf_Die next;
  if (libdw->dwarf_siblingof(entry, &next) != 0 || libdw->dwarf_dieoffset(&next) <= before) return false;
  *entry = next;
  return true;
}

// The child of `parent` that covers `address` and is one of the two tags that nest inside a function.
static bool enter(csymbols_image *image, const Dwarf_Die *parent, uint64_t address, csymbols_clock *clock,
                  Dwarf_Die *entry) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Die outer = *parent;
  if (libdw->dwarf_child(&outer, entry) != 0) return false;
  do {
    if (csymbols_is_over(clock)) return false;
    int tag = libdw->dwarf_tag(entry);
    if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && libdw->dwarf_haspc(entry, address) > 0)
      return true;
  } while (advance(libdw, entry));
  return false;
}

size_t csymbols_inlined_at(csymbols_image *image, Dwarf_Die *function, uint64_t address, csymbols_clock *clock,
                           Dwarf_Die *inlined, size_t capacity) {
  Dwarf_Die outer = *function, entry;
  size_t count = 0;
  // Every step goes deeper into the tree, which a valid unit has no more of than it has bytes.
  while (count < capacity && enter(image, &outer, address, clock, &entry)) {
    if (image->libdw->dwarf_tag(&entry) == DW_TAG_inlined_subroutine) inlined[count++] = entry;
    outer = entry;
  }
  return count;
}
