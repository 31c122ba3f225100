// The images of this process, copied from the dynamic linker's list without its locks.

#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "CUnwind.h"
#include "Memory/mappings.h"

/// The most images in the list. Their room is reserved once and costs memory only when used.
#define CUNWIND_MAX_IMAGES 8192u
/// The most bytes of all paths together.
#define CUNWIND_MAX_PATH_BYTES (1024u * 1024u)

/// The bytes of pieces of memory, by which a change is found out.
typedef struct cunwind_memory_record {
  struct iovec *pieces;  ///< The addresses and lengths of the pieces.
  uint8_t *expected;     ///< The recorded bytes, one piece after another.
  uint8_t *present;      ///< A buffer for the current bytes.
  size_t count, capacity, bytes;
  bool is_complete;  ///< The record contains every piece that was added.
} cunwind_memory_record;

typedef struct cunwind_module {
  cunwind_image image;
  uint64_t code_low, code_high;    ///< The range of its executable segments.
  uint64_t fixed_low, fixed_high;  ///< The range of its segments that are not writable: it may be cached.
  uint64_t table;                  ///< The binary search table of .eh_frame_hdr; 0 if there is no usable one.
  uint64_t table_base;             ///< The .eh_frame_hdr, to which the table's offsets are relative.
  uint64_t table_count;
  uint64_t path_at;  ///< A place where the file is mapped, if the linker knows only a relative path; or 0.
} cunwind_module;

/// The most program headers that are read. Linkers write 8 to 14.
#define CUNWIND_MAX_SEGMENTS 64u

/// An image of the dynamic linker's list, and its program headers.
typedef struct cunwind_linked_image {
  uint64_t entry;      ///< The address of the linker's entry, a `struct link_map`.
  uint64_t base;       ///< The load bias (l_addr).
  uint64_t name;       ///< The address of the path (l_name): read it with `cunwind_guarded_read`.
  uint64_t dynamic;    ///< The address of the dynamic section (l_ld).
  bool is_executable;  ///< The first image. Its path is empty.
  uint16_t segment_count;
  ElfW(Phdr) segments[CUNWIND_MAX_SEGMENTS];
} cunwind_linked_image;

typedef struct cunwind_modules {
  cunwind_module *list;  ///< Sorted by `image.low`.
  size_t count;
  char *paths;
  size_t path_bytes;
  cunwind_memory_record record;  ///< The record of the last refresh.
  uint64_t generation;           ///< Grows whenever the list is rebuilt.
  cunwind_mappings mappings;
  char executable_path[4096];
} cunwind_modules;

#pragma GCC visibility push(hidden)

/// Allocates the list. False with errno on failure.
bool cunwind_modules_init(cunwind_modules *modules);
void cunwind_modules_destroy(cunwind_modules *modules);

/// Rebuilds the list if the images changed, and returns whether it did. Takes no lock. Not while a capture uses it.
bool cunwind_modules_refresh(cunwind_modules *modules);

/// Fills the segments of an image, whose other fields are set. False: its program headers are not in memory.
bool cunwind_read_segments(cunwind_linked_image *image, cunwind_mappings *mappings);

/// Returns the image that contains `address`, or NULL.
const cunwind_module *cunwind_module_at(const cunwind_modules *modules, uint64_t address);

/// Returns the image with `address` in an executable segment, or NULL.
const cunwind_module *cunwind_module_of_code(const cunwind_modules *modules, uint64_t address);

#pragma GCC visibility pop
