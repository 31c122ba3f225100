// An image of the dynamic linker's list, and its program headers.

#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "Memory/mappings.h"

/// The most program headers that are read. Linkers write 8 to 14.
#define CUNWIND_MAX_SEGMENTS 64u

typedef struct cunwind_linked_image {
  uint64_t entry;      ///< The address of the linker's entry, a `struct link_map`.
  uint64_t base;       ///< The load bias (l_addr).
  uint64_t name;       ///< The address of the path (l_name): read it with `cunwind_guarded_read`.
  uint64_t dynamic;    ///< The address of the dynamic section (l_ld).
  bool is_executable;  ///< The first image. Its path is empty.
  uint16_t segment_count;
  ElfW(Phdr) segments[CUNWIND_MAX_SEGMENTS];
} cunwind_linked_image;

#pragma GCC visibility push(hidden)

/// Fills the segments of an image, whose other fields are set. False: its program headers are not in memory.
bool cunwind_read_segments(cunwind_linked_image *image, cunwind_mappings *mappings);

#pragma GCC visibility pop
