// The mappings of this process, from /proc/self/maps.

#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct cunwind_mapping {
  uint64_t low, high;
  uint64_t offset;  ///< The place in the file of the first byte.
  uint64_t file;    ///< The file's device and inode in one number; 0: no file is mapped.
  bool is_writable;
} cunwind_mapping;

#pragma GCC visibility push(hidden)

/// Calls `visit` with each mapping, by ascending address, until it returns false. Visits none if /proc shows none.
/// Async-signal-safe: yes, if `visit` is.
void cunwind_visit_mappings(bool (*visit)(const cunwind_mapping *mapping, void *context), void *context);

#pragma GCC visibility pop
