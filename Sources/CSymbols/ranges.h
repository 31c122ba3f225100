// Which of many address ranges is an address in?

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The largest number of ranges to check for one address. Ranges that overlap are nested functions, rarely three deep;
/// only damaged debug information has more.
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

#pragma GCC visibility push(hidden)

/// Adds a range. Empty ranges, and those at the addresses that linkers give to code they left out, are passed over.
/// False when there is no memory.
bool csymbols_ranges_add(csymbols_ranges *ranges, uint64_t low, uint64_t high, uint64_t owner);

/// Makes the ranges ready for `csymbols_ranges_find`: call after the last one was added.
void csymbols_ranges_sort(csymbols_ranges *ranges);

/// The range around `address` that begins last, which of nested ones is the innermost; NULL when there is none.
const csymbols_range *csymbols_ranges_find(const csymbols_ranges *ranges, uint64_t address);

void csymbols_ranges_free(csymbols_ranges *ranges);

#pragma GCC visibility pop
