// From an address to functions and lines.

#include <string.h>

#include "image.h"

/// The largest number of earlier rows that are searched for a line, for code without one.
#define MAX_ROWS_BACK 64u

typedef struct place {
  const char *file;
  uint32_t line, column;
} place;

static const char *name_of(const csymbols_libdw *libdw, Dwarf_Die *entry) {
  static const unsigned names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
    Dwarf_Attribute attribute;
    // From the function itself, or from what it is an instance of.
    if (!libdw->dwarf_attr_integrate(entry, names[index], &attribute)) continue;
    const char *name = libdw->dwarf_formstring(&attribute);
    if (name && *name) return name;
  }
  return NULL;
}

static uint32_t number_of(const csymbols_libdw *libdw, Dwarf_Die *entry, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value;
  if (!libdw->dwarf_attr(entry, name, &attribute) || libdw->dwarf_formudata(&attribute, &value) != 0) return 0;
  return value <= UINT32_MAX ? (uint32_t)value : 0;
}

static int line_of(const csymbols_libdw *libdw, Dwarf_Line *row) {
  int number;
  return libdw->dwarf_lineno(row, &number) == 0 && number > 0 ? number : 0;
}

/// The innermost function at `address`: `function`, or what is inlined into it there.
static Dwarf_Off innermost_at(csymbols_image *image, Dwarf_Die *function, uint64_t address, csymbols_clock *clock) {
  Dwarf_Die nested[CSYMBOLS_MAX_LOCATIONS];
  return image->libdw->dwarf_dieoffset(&nested[csymbols_inlined_at(image, function, address, clock, nested)]);
}

// What the compiler made between lines has line 0 (DWARF 5, 6.2.2). The nearest line before it that is of the same function,
// inlined in the same place, is where a developer has to look.
static Dwarf_Line *row_before(csymbols_image *image, csymbols_unit *unit, Dwarf_Die *function, Dwarf_Die *innermost,
                              Dwarf_Line *row, csymbols_clock *clock) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Off wanted = libdw->dwarf_dieoffset(innermost);
  Dwarf_Addr begin;
  for (unsigned rows = 0; rows < MAX_ROWS_BACK && !csymbols_is_over(clock); rows++) {
    if (libdw->dwarf_lineaddr(row, &begin) != 0 || begin == 0 || libdw->dwarf_haspc(function, begin - 1) <= 0)
      return NULL;
    row = libdw->dwarf_getsrc_die(&unit->root, begin - 1);
    if (!row) return NULL;
    if (line_of(libdw, row) > 0 && innermost_at(image, function, begin - 1, clock) == wanted) return row;
  }
  return NULL;
}

// `function` is the one that the address is in, `innermost` what is inlined into it there, or itself; NULL: not known.
static place place_of_address(csymbols_image *image, csymbols_unit *unit, Dwarf_Die *function, Dwarf_Die *innermost,
                              uint64_t address, csymbols_clock *clock) {
  const csymbols_libdw *libdw = image->libdw;
  place place = {0};
  int number;
  Dwarf_Line *row = libdw->dwarf_getsrc_die(&unit->root, address);
  if (!row) return place;
  if (function && line_of(libdw, row) == 0) {
    Dwarf_Line *before = row_before(image, unit, function, innermost, row, clock);
    if (before) row = before;
  }
  place.file = libdw->dwarf_linesrc(row, NULL, NULL);
  place.line = (uint32_t)line_of(libdw, row);
  if (libdw->dwarf_linecol(row, &number) == 0 && number > 0) place.column = (uint32_t)number;
  return place;
}

// Where the function was inlined: the place in the function around it.
static place place_of_call(csymbols_image *image, Dwarf_Files *files, size_t file_count, Dwarf_Die *inlined) {
  const csymbols_libdw *libdw = image->libdw;
  place place = {.line = number_of(libdw, inlined, DW_AT_call_line),
                 .column = number_of(libdw, inlined, DW_AT_call_column)};
  Dwarf_Attribute attribute;
  Dwarf_Word file;
  if (files && libdw->dwarf_attr(inlined, DW_AT_call_file, &attribute) &&
      libdw->dwarf_formudata(&attribute, &file) == 0 && file < file_count)
    place.file = libdw->dwarf_filesrc(files, file, NULL, NULL);
  return place;
}

// Where the function that `entry` is, or is an instance of, is declared.
static place place_of_declaration(const csymbols_libdw *libdw, Dwarf_Files *files, size_t file_count,
                                  Dwarf_Die *entry) {
  place place = {0};
  Dwarf_Attribute attribute;
  Dwarf_Word line, file;
  if (!files || !libdw->dwarf_attr_integrate(entry, DW_AT_decl_line, &attribute) ||
      libdw->dwarf_formudata(&attribute, &line) != 0 || line == 0 || line > UINT32_MAX)
    return place;
  // The number of a file is one of the unit's that the attribute is in, and only this unit's line table has been admitted.
  if (!libdw->dwarf_attr_integrate(entry, DW_AT_decl_file, &attribute) || attribute.cu != entry->cu ||
      libdw->dwarf_formudata(&attribute, &file) != 0 || file >= file_count)
    return place;
  place.file = libdw->dwarf_filesrc(files, file, NULL, NULL);
  place.line = place.file ? (uint32_t)line : 0;
  return place;
}

// Whether the compiler made the function that `entry` is, or is an instance of, such as a C++ class's copy constructor. GCC says
// so of lambdas, too, and the compiler makes no other function of that name.
static bool is_artificial(const csymbols_libdw *libdw, Dwarf_Die *entry) {
  Dwarf_Attribute attribute;
  bool is_set = false;
  const char *name =
      libdw->dwarf_attr_integrate(entry, DW_AT_name, &attribute) ? libdw->dwarf_formstring(&attribute) : NULL;
  if (name && strcmp(name, "operator()") == 0) return false;
  return libdw->dwarf_attr_integrate(entry, DW_AT_artificial, &attribute) &&
         libdw->dwarf_formflag(&attribute, &is_set) == 0 && is_set;
}

static const char *directory_of(const csymbols_libdw *libdw, csymbols_unit *unit) {
  Dwarf_Attribute attribute;
  return libdw->dwarf_attr(&unit->root, DW_AT_comp_dir, &attribute) ? libdw->dwarf_formstring(&attribute) : NULL;
}

static void locate_in(csymbols_image *image, csymbols_unit *unit, Dwarf_Die *function, uint64_t address, bool has_lines,
                      csymbols_clock *clock, csymbols_location *locations, size_t *count) {
  const csymbols_libdw *libdw = image->libdw;
  Dwarf_Die nested[CSYMBOLS_MAX_LOCATIONS];
  size_t depth = csymbols_inlined_at(image, function, address, clock, nested);
  Dwarf_Files *files = NULL;
  size_t file_count = 0;
  if (!has_lines || libdw->dwarf_getsrcfiles(&unit->root, &files, &file_count) != 0) files = NULL;
  const char *directory = directory_of(libdw, unit);
  place place = has_lines ? place_of_address(image, unit, function, &nested[depth], address, clock) : (struct place){0};
  for (size_t index = 0; index <= depth; index++) {
    Dwarf_Die *entry = &nested[depth - index];
    struct place declaration = place_of_declaration(libdw, files, file_count, entry);
    locations[(*count)++] = (csymbols_location){.function = name_of(libdw, entry),
                                                .file = place.file,
                                                .line = place.line,
                                                .column = place.column,
                                                .declaration_file = declaration.file,
                                                .declaration_line = declaration.line,
                                                .directory = directory,
                                                .is_artificial = is_artificial(libdw, entry),
                                                .is_inlined = index < depth};
    if (index < depth) place = place_of_call(image, files, file_count, entry);
  }
}

csymbols_status csymbols_locate_guarded(csymbols_image *image, uint64_t address, uint64_t deadline,
                                        csymbols_location *locations, size_t *count) {
  csymbols_clock clock = {.deadline = deadline};
  csymbols_status status = csymbols_units_build(image, &clock);
  if (status != CSYMBOLS_OK) return status;
  const csymbols_range *range = csymbols_ranges_find(&image->unit_ranges, address);
  if (!range) return CSYMBOLS_NOT_COVERED;
  csymbols_unit *unit = &image->units[range->owner];
  status = csymbols_functions_build(image, unit, &clock);
  if (status == CSYMBOLS_OUT_OF_TIME) return status;
  csymbols_status admitted = csymbols_lines_admit(image, unit);
  bool has_lines = admitted == CSYMBOLS_OK;
  if (status == CSYMBOLS_OK) status = admitted;
  const csymbols_range *found = csymbols_ranges_find(&unit->functions, address);
  Dwarf_Die function;
  if (found && image->libdw->dwarf_offdie(image->dwarf, found->owner, &function)) {
    locate_in(image, unit, &function, address, has_lines, &clock, locations, count);
    return clock.is_over && status == CSYMBOLS_OK ? CSYMBOLS_OUT_OF_TIME : status;
  }
  if (has_lines) {
    place place = place_of_address(image, unit, NULL, NULL, address, &clock);
    locations[(*count)++] = (csymbols_location){
        .file = place.file, .line = place.line, .column = place.column, .directory = directory_of(image->libdw, unit)};
  }
  return status == CSYMBOLS_OK && unit->is_split ? CSYMBOLS_SPLIT : status;
}
