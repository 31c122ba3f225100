// Walks over a unit's entries (DWARF 2 to 5; DWARF 5, 7.5) without making anything of them.
//
// libdw can do it and takes ten times as long: to find an entry's sibling it passes through all its children, and looks
// up each one's abbreviation under a lock.

#include "entry_scan.h"

#include <stdlib.h>

/// A form's size that the form does not tell.
#define VARIES (-1)

struct csymbols_abbreviation {
  uint64_t code;
  size_t first_form, form_count;
  uint64_t bytes;  ///< Of an entry's attributes, if they do not vary.
  bool varies, is_function;
};

static int form_bytes(const csymbols_entry_scan *scan, unsigned form) {
  int offset = scan->entries.is_wide ? 8 : 4;
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_addr:
      return scan->address_bytes;
    case DW_FORM_ref_addr:
      return scan->version < 3 ? scan->address_bytes : offset;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return offset;
    default:
      return VARIES;
  }
}

static void skip_value(csymbols_entry_scan *scan, uint64_t form) {
  csymbols_cursor *from = &scan->entries;
  if (form == DW_FORM_indirect) {
    form = csymbols_read_leb128(from);
    // An indirect constant would have its value in the abbreviation, which says another form.
    if (form == DW_FORM_indirect || form == DW_FORM_implicit_const) from->has_failed = true;
  }
  int bytes = form <= UINT16_MAX ? form_bytes(scan, (unsigned)form) : VARIES;
  if (bytes != VARIES) {
    csymbols_skip(from, (uint64_t)bytes);
    return;
  }
  switch (form) {
    case DW_FORM_string:
      csymbols_read_string(from);
      break;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      csymbols_read_leb128(from);
      break;
    case DW_FORM_block:
    case DW_FORM_exprloc:
      csymbols_skip(from, csymbols_read_leb128(from));
      break;
    case DW_FORM_block1:
      csymbols_skip(from, csymbols_read_fixed(from, 1));
      break;
    case DW_FORM_block2:
      csymbols_skip(from, csymbols_read_fixed(from, 2));
      break;
    case DW_FORM_block4:
      csymbols_skip(from, csymbols_read_fixed(from, 4));
      break;
    default:
      from->has_failed = true;
  }
}

// Reads the attributes of an abbreviation, and keeps their forms unless `forms` is NULL.
static void read_attributes(const csymbols_entry_scan *scan, csymbols_cursor *from, bool is_subprogram,
                            csymbols_abbreviation *abbreviation, uint16_t *forms) {
  while (!from->has_failed) {
    uint64_t name = csymbols_read_leb128(from), form = csymbols_read_leb128(from);
    if (form == DW_FORM_implicit_const) csymbols_read_leb128(from);
    if (name == 0 && form == 0) return;
    if (form > UINT16_MAX) from->has_failed = true;
    int bytes = form_bytes(scan, (unsigned)form);
    if (bytes == VARIES) abbreviation->varies = true;
    else abbreviation->bytes += (uint64_t)bytes;
    if (is_subprogram && (name == DW_AT_low_pc || name == DW_AT_ranges)) abbreviation->is_function = true;
    if (forms) forms[abbreviation->first_form + abbreviation->form_count] = (uint16_t)form;
    abbreviation->form_count++;
  }
}

// Reads the table of abbreviations as far as it is whole, `limit` of them at most; counts only, if there is nowhere to put
// them. Returns how many forms they have, and stores how many they are.
static size_t read_table(csymbols_entry_scan *scan, csymbols_cursor from, size_t limit, csymbols_clock *clock) {
  size_t count = 0, forms = 0;
  while (count < limit && !csymbols_is_over(clock)) {
    csymbols_abbreviation abbreviation = {.code = csymbols_read_leb128(&from), .first_form = forms};
    bool is_subprogram = csymbols_read_leb128(&from) == DW_TAG_subprogram;
    csymbols_skip(&from, 1);  // Whether there are children.
    if (abbreviation.code == 0) break;
    read_attributes(scan, &from, is_subprogram, &abbreviation, scan->forms);
    if (from.has_failed) break;
    if (scan->abbreviations) scan->abbreviations[count] = abbreviation;
    forms += abbreviation.form_count;
    count++;
  }
  scan->abbreviation_count = count;
  return forms;
}

static int compare(const void *left, const void *right) {
  const csymbols_abbreviation *a = left, *b = right;
  return a->code < b->code ? -1 : a->code > b->code;
}

// Compilers write them in order.
static bool are_sorted(const csymbols_entry_scan *scan) {
  for (size_t index = 1; index < scan->abbreviation_count; index++)
    if (scan->abbreviations[index].code <= scan->abbreviations[index - 1].code) return false;
  return true;
}

static csymbols_status keep_abbreviations(csymbols_entry_scan *scan, csymbols_bytes table, uint64_t maximum_bytes,
                                          csymbols_clock *clock) {
  csymbols_cursor from = {.at = table.start, .end = table.start + table.size};
  size_t forms = read_table(scan, from, SIZE_MAX, clock);
  // Neither product can overflow: an abbreviation has five bytes in the section, a form two.
  if (scan->abbreviation_count * sizeof *scan->abbreviations + forms * sizeof *scan->forms > maximum_bytes)
    return CSYMBOLS_TOO_LARGE;
  // At least one, because an allocation of nothing may be NULL.
  scan->abbreviations = calloc(scan->abbreviation_count + 1, sizeof *scan->abbreviations);
  scan->forms = calloc(forms + 1, sizeof *scan->forms);
  if (!scan->abbreviations || !scan->forms) return CSYMBOLS_NO_MEMORY;
  // No more than was counted: there is no room for the forms of one that is cut short.
  read_table(scan, from, scan->abbreviation_count, clock);
  if (clock->is_over) return CSYMBOLS_OUT_OF_TIME;
  if (!are_sorted(scan)) qsort(scan->abbreviations, scan->abbreviation_count, sizeof *scan->abbreviations, compare);
  return CSYMBOLS_OK;
}

csymbols_status csymbols_entry_scan_begin(csymbols_entry_scan *scan, const csymbols_image *image,
                                          const csymbols_unit *unit, csymbols_clock *clock) {
  *scan = (csymbols_entry_scan){0};
  csymbols_bytes info = csymbols_section_bytes(image, image->copy.info_section);
  csymbols_bytes table = csymbols_section_bytes(image, image->copy.abbreviation_section);
  Dwarf_Off next, abbreviations;
  size_t header_bytes;
  uint8_t offset_bytes;
  if (image->libdw->dwarf_next_unit(image->dwarf, unit->offset, &next, &header_bytes, &scan->version, &abbreviations,
                                    &scan->address_bytes, &offset_bytes, NULL, NULL) != 0)
    return CSYMBOLS_OK;
  // Damage shows as a unit without functions.
  if (next > info.size || header_bytes > next - unit->offset || abbreviations > table.size) return CSYMBOLS_OK;
  scan->info = info.start;
  scan->entries = (csymbols_cursor){
      .at = info.start + unit->offset + header_bytes, .end = info.start + next, .is_wide = offset_bytes == 8};
  uint64_t used = csymbols_image_bytes(image);
  return keep_abbreviations(scan, (csymbols_bytes){table.start + abbreviations, table.size - abbreviations},
                            used < image->maximum_bytes ? image->maximum_bytes - used : 0, clock);
}

// Compilers number them from one, without gaps.
static const csymbols_abbreviation *find(const csymbols_entry_scan *scan, uint64_t code) {
  if (code <= scan->abbreviation_count && scan->abbreviations[code - 1].code == code)
    return &scan->abbreviations[code - 1];
  csymbols_abbreviation wanted = {.code = code};
  return bsearch(&wanted, scan->abbreviations, scan->abbreviation_count, sizeof wanted, compare);
}

bool csymbols_entry_scan_next(csymbols_entry_scan *scan, csymbols_clock *clock, uint64_t *offset) {
  csymbols_cursor *from = &scan->entries;
  while (from->at < from->end && !csymbols_is_over(clock)) {
    *offset = (uint64_t)(from->at - scan->info);
    uint64_t code = csymbols_read_leb128(from);
    if (code == 0) continue;  // The end of a list of children.
    const csymbols_abbreviation *abbreviation = find(scan, code);
    if (!abbreviation) return false;
    if (!abbreviation->varies) csymbols_skip(from, abbreviation->bytes);
    for (size_t form = 0; abbreviation->varies && form < abbreviation->form_count && !from->has_failed; form++)
      skip_value(scan, scan->forms[abbreviation->first_form + form]);
    if (from->has_failed) return false;
    if (abbreviation->is_function) return true;
  }
  return false;
}

void csymbols_entry_scan_end(csymbols_entry_scan *scan) {
  free(scan->abbreviations);
  free(scan->forms);
  *scan = (csymbols_entry_scan){0};
}
