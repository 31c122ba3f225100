// An opened image: the copied sections, libdw's view of them, and the tables that find a function by its address.

#pragma once

#include "CSymbols.h"
#include "libdw.h"

/// Debugging information entries between two looks at the clock.
#define CSYMBOLS_ENTRIES_PER_LOOK 16u

/// The most ranges to check for one address: nested functions, rarely three deep; only damaged information has more.
#define CSYMBOLS_MAX_OVERLAPS 1024u

typedef struct csymbols_range {
  uint64_t low, high;  ///< `high` is the first address past it.
  uint64_t reach;      ///< The highest `high` of this range and those sorted before it.
  uint64_t owner;      ///< What the range belongs to.
} csymbols_range;

typedef struct csymbols_ranges {
  csymbols_range *list;
  size_t count, capacity;
} csymbols_ranges;

/// What came of work that is done once, or goes on later if its time was over.
typedef struct csymbols_outcome {
  bool is_done;
  csymbols_status status;
} csymbols_outcome;

typedef struct csymbols_unit {
  Dwarf_Die root;
  csymbols_ranges functions;  ///< Owners are offsets of the functions' entries.
  csymbols_outcome functions_built;
  bool is_split;
  csymbols_outcome lines_admitted;  ///< CSYMBOLS_OK: its line table may be parsed, and is counted.
} csymbols_unit;

/// A copy of the sections, laid out as an ELF file.
typedef struct csymbols_copy {
  char *bytes;
  size_t length;            ///< Of the ELF file.
  size_t mapped_length;     ///< Of the mapping; 0: the copy is in the heap.
  size_t line_section;      ///< Number of .debug_line; 0: there is none.
  uint64_t unpacked_bytes;  ///< What decompressing adds.
} csymbols_copy;

struct csymbols_image {
  const csymbols_libdw *libdw;
  csymbols_copy copy;
  Elf *elf;
  Dwarf *dwarf;
  uint64_t maximum_bytes;
  uint64_t line_bytes;   ///< Upper bound of what libdw's line tables hold.
  uint64_t table_bytes;  ///< Of our own tables.
  csymbols_unit *units;
  size_t unit_count, unit_capacity;
  csymbols_ranges unit_ranges;  ///< Owners are indices into `units`.
  Dwarf_Off next_unit;          ///< Where the list of units goes on; meaningless once it is built.
  csymbols_outcome units_built;
  bool is_out_of_memory;  ///< libdw ran out of memory in the middle of its work: only closed from then on.
};

/// A time limit, which is checked once in a while.
typedef struct csymbols_clock {
  uint64_t deadline;
  unsigned entries;
  bool is_over;
} csymbols_clock;

#pragma GCC visibility push(hidden)

/// Copies the sections of the file into `copy`. The caller frees it also after a failure.
csymbols_status csymbols_copy_sections(csymbols_copy *copy, int descriptor, uint16_t machine,
                                       const csymbols_section *sections, size_t count, uint64_t maximum_bytes);
void csymbols_copy_free(csymbols_copy *copy);

/// Lists the units and their ranges, or goes on with it. CSYMBOLS_OK, _OUT_OF_TIME, _TOO_LARGE, _NO_MEMORY.
csymbols_status csymbols_units_build(csymbols_image *image, csymbols_clock *clock);

/// Lists the functions of a unit. CSYMBOLS_OK, _OUT_OF_TIME (and nothing is kept), _TOO_LARGE, _NO_MEMORY.
csymbols_status csymbols_functions_build(csymbols_image *image, csymbols_unit *unit, csymbols_clock *clock);

/// csymbols_locate(), where libdw may leave by longjmp(3).
csymbols_status csymbols_locate_guarded(csymbols_image *image, uint64_t address, uint64_t deadline,
                                        csymbols_location *locations, size_t *count);

/// Stores `function` and the entries of functions inlined into it at `address`, outermost first, at most
/// CSYMBOLS_MAX_LOCATIONS; returns the index of the last one.
size_t csymbols_inlined_at(csymbols_image *image, const Dwarf_Die *function, uint64_t address, csymbols_clock *clock,
                           Dwarf_Die *nested);

/// Whether the unit's line table may be parsed: whether it is whole, and what it will need fits in the image's memory, to
/// which it is added. CSYMBOLS_OK, _TOO_LARGE, _NO_MEMORY, _DAMAGED.
csymbols_status csymbols_lines_admit(csymbols_image *image, csymbols_unit *unit);

/// Adds a range to one of the image's tables. Empty ranges, and those at the addresses that linkers give to code they
/// left out, are passed over. CSYMBOLS_OK, _TOO_LARGE, _NO_MEMORY.
csymbols_status csymbols_keep_range(csymbols_image *image, csymbols_ranges *ranges, uint64_t low, uint64_t high,
                                    uint64_t owner);

void csymbols_drop_ranges(csymbols_image *image, csymbols_ranges *ranges);

/// The nanoseconds of CLOCK_MONOTONIC.
uint64_t csymbols_now(void);

/// Counts one entry, and says whether the time is over.
bool csymbols_is_over(csymbols_clock *clock);

/// Makes the ranges ready for `csymbols_ranges_find`: call after the last one was added.
void csymbols_ranges_sort(csymbols_ranges *ranges);

/// The range around `address` that begins last, which of nested ones is the innermost; NULL when there is none.
const csymbols_range *csymbols_ranges_find(const csymbols_ranges *ranges, uint64_t address);

#pragma GCC visibility pop
