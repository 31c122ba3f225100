// The images of this process, copied from the dynamic linker's list without its locks.

#ifndef CUNWIND_MODULES_H
#define CUNWIND_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CUnwind.h"
#include "Memory/memory_unchanged.h"

/// The most images in the list. Their room is reserved once and costs memory only as it is used.
#define CUNWIND_MAX_IMAGES 8192u
/// The most bytes of all their paths together.
#define CUNWIND_MAX_PATH_BYTES (1024u * 1024u)

typedef struct cunwind_module {
  cunwind_image image;
  uint64_t code_low, code_high;    ///< Around its executable segments.
  uint64_t fixed_low, fixed_high;  ///< Around its segments that are not writable: what may be cached.
  uint64_t table;                  ///< The binary search table of .eh_frame_hdr, or 0: it has no usable one.
  uint64_t table_base;             ///< The .eh_frame_hdr, which the table's offsets are relative to.
  uint64_t table_count;
} cunwind_module;

typedef struct cunwind_modules {
  cunwind_module *list;  ///< Sorted by `image.low`.
  size_t count;
  size_t omitted_count;  ///< Images that did not fit, or whose headers cannot be read.
  char *paths;
  size_t path_bytes;
  cunwind_memory_record record;  ///< Of the last refresh.
  uint64_t generation;           ///< Grows whenever the list is rebuilt.
  char executable_path[4096];
} cunwind_modules;

#pragma GCC visibility push(hidden)

/// False with errno. Async-signal-safe: no.
bool cunwind_modules_init(cunwind_modules *modules);
void cunwind_modules_destroy(cunwind_modules *modules);

/// Rebuilds the list if images have come or gone; true when it did. Takes no lock. Not while a capture uses the list.
/// Async-signal-safe: no.
bool cunwind_modules_refresh(cunwind_modules *modules);

/// The image that `address` is in, or NULL.
const cunwind_module *cunwind_module_at(const cunwind_modules *modules, uint64_t address);

/// The image in whose executable segment `address` is, or NULL.
const cunwind_module *cunwind_module_of_code(const cunwind_modules *modules, uint64_t address);

#pragma GCC visibility pop

#endif
