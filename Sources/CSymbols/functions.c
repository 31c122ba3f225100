// Where each function of a unit is, and which functions were inlined into it.

#include "image.h"

/// The greatest depth of a function's entry. Damaged debug information may have a deeper one.
#define MAX_DEPTH 64u

static bool may_hold_functions(int tag) {
  return tag == DW_TAG_subprogram || tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
         tag == DW_TAG_class_type || tag == DW_TAG_enumeration_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_interface_type;
}

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

// Moves to the next entry of a list. Behind the children of `entry`, if that is known: libdw would read them again, which
// took a third of the time. At the end of the list the result is false, and `*behind` is the offset behind it, or 0.
static bool step(csymbols_image *image, Dwarf_Die *entry, Dwarf_Off behind_children, Dwarf_Off *behind) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Off offset = libdw->dwarf_dieoffset(entry);
  Dwarf_Die next = {0};
  *behind = 0;
  if (behind_children > offset && libdw->dwarf_offdie(image->dwarf, behind_children, &next) && next.cu == entry->cu) {
    *entry = next;
    if (libdw->dwarf_tag(&next) != DW_TAG_invalid) return true;
    *behind = behind_children + 1;  // A null entry, which is one byte, ends the list.
    return false;
  }
  next = (Dwarf_Die){0};
  int end = libdw->dwarf_siblingof(entry, &next);
  // With 1, libdw stores the address of the null entry (dwarf_siblingof.c).
  if (end == 1 && next.addr) *behind = offset + (Dwarf_Off)((const char *)next.addr - (const char *)entry->addr) + 1;
  // In debug information that is not damaged, the next entry lies further on.
  if (end != 0 || libdw->dwarf_dieoffset(&next) <= offset) return false;
  *entry = next;
  return true;
}

// Functions lie in types, and in other functions. Stores the offset behind the children in `*behind`, or 0.
static csymbols_status walk(csymbols_image *image, csymbols_unit *unit, Dwarf_Die *parent, unsigned depth,
                            csymbols_clock *clock, Dwarf_Off *behind) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Die entry;
  Dwarf_Off behind_children;
  *behind = 0;
  if (depth > MAX_DEPTH || libdw->dwarf_child(parent, &entry) != 0) return CSYMBOLS_OK;
  do {
    if (csymbols_is_over(clock)) return CSYMBOLS_OUT_OF_TIME;
    behind_children = 0;
    int tag = libdw->dwarf_tag(&entry);
    if (!may_hold_functions(tag)) continue;
    csymbols_status status = tag == DW_TAG_subprogram ? add_function(image, unit, &entry, clock) : CSYMBOLS_OK;
    if (status == CSYMBOLS_OK) status = walk(image, unit, &entry, depth + 1, clock, &behind_children);
    if (status != CSYMBOLS_OK) return status;
  } while (step(image, &entry, behind_children, behind));
  return CSYMBOLS_OK;
}

csymbols_status csymbols_functions_build(csymbols_image *image, csymbols_unit *unit, csymbols_clock *clock) {
  if (unit->functions_built.is_done) return unit->functions_built.status;
  Dwarf_Die root = unit->root;
  Dwarf_Off behind;
  csymbols_status status = walk(image, unit, &root, 0, clock, &behind);
  if (status == CSYMBOLS_OK) csymbols_ranges_sort(&unit->functions);
  else csymbols_drop_ranges(image, &unit->functions);
  unit->functions_built = (csymbols_outcome){status != CSYMBOLS_OUT_OF_TIME, status};
  return status;
}

// The child of `parent` that covers `address` and is one of the two tags that nest inside a function.
static bool enter(csymbols_image *image, const Dwarf_Die *parent, uint64_t address, csymbols_clock *clock,
                  Dwarf_Die *entry) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Die outer = *parent;
  Dwarf_Off behind;
  if (libdw->dwarf_child(&outer, entry) != 0) return false;
  do {
    if (csymbols_is_over(clock)) return false;
    int tag = libdw->dwarf_tag(entry);
    if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && libdw->dwarf_haspc(entry, address) > 0)
      return true;
  } while (step(image, entry, 0, &behind));
  return false;
}

size_t csymbols_inlined_at(csymbols_image *image, const Dwarf_Die *function, uint64_t address, csymbols_clock *clock,
                           Dwarf_Die *nested) {
  Dwarf_Die outer = *function, entry;
  size_t last = 0;
  nested[0] = *function;
  // Every step goes deeper into the tree, which a valid unit has no more of than it has bytes.
  while (last + 1 < CSYMBOLS_MAX_LOCATIONS && enter(image, &outer, address, clock, &entry)) {
    if (image->libdw->dwarf_tag(&entry) == DW_TAG_inlined_subroutine) nested[++last] = entry;
    outer = entry;
  }
  return last;
}
