// Which entries of a unit are functions with code?

#ifndef CSYMBOLS_ENTRY_SCAN_H
#define CSYMBOLS_ENTRY_SCAN_H

#include "image.h"

typedef struct csymbols_abbreviation csymbols_abbreviation;

/// A walk over a unit's entries. It reads nothing outside the unit's own bytes and its table of abbreviations.
typedef struct csymbols_entry_scan {
  csymbols_cursor entries;
  const uint8_t *info;  ///< Where .debug_info begins.
  Dwarf_Half version;
  uint8_t address_bytes;
  csymbols_abbreviation *abbreviations;  ///< Sorted by their codes.
  size_t abbreviation_count;
  uint16_t *forms;  ///< Of all their attributes.
} csymbols_entry_scan;

#pragma GCC visibility push(hidden)

/// Prepares a walk. The caller ends it also after a failure. CSYMBOLS_OK, _OUT_OF_TIME, _TOO_LARGE, _NO_MEMORY.
csymbols_status csymbols_entry_scan_begin(csymbols_entry_scan *scan, const csymbols_image *image,
                                          const csymbols_unit *unit, csymbols_clock *clock);

/// Stores the offset in .debug_info of the next function that has code, in whatever it lies. About 10 ns an entry. False when
/// there is no more, when what follows is damaged, or when the time is over.
bool csymbols_entry_scan_next(csymbols_entry_scan *scan, csymbols_clock *clock, uint64_t *offset);

void csymbols_entry_scan_end(csymbols_entry_scan *scan);

#pragma GCC visibility pop

#endif
