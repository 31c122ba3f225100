// The dynamic linker's list of images, read without its locks, as a debugger does.

#ifndef CUNWIND_LINK_MAP_H
#define CUNWIND_LINK_MAP_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The most program headers that are read. Linkers write 8 to 14.
#define CUNWIND_MAX_SEGMENTS 64u
/// The most images that a walk visits. It ends the walk if another thread damages the list meanwhile.
#define CUNWIND_MAX_LINKED_IMAGES 16384u

/// An image in the linker's list.
typedef struct cunwind_linked_image {
  uint64_t entry;      ///< The address of the linker's entry, a `struct link_map`.
  uint64_t base;       ///< The load bias (l_addr).
  uint64_t name;       ///< The address of the path (l_name): read it with `cunwind_guarded_read`.
  bool is_executable;  ///< The first image. Its path is empty.
  uint16_t segment_count;
  ElfW(Phdr) segments[CUNWIND_MAX_SEGMENTS];
} cunwind_linked_image;

#pragma GCC visibility push(hidden)

/// Calls `visit` for each image with readable program headers, in the linker's order, and counts the others in
/// `unreadable`. False: the list changed during the walk, its links no longer matched, and not every image was visited.
/// Takes no lock and cannot fault. Async-signal-safe: yes, if `visit` is.
bool cunwind_link_map_walk(void (*visit)(const cunwind_linked_image *image, void *context), void *context,
                           size_t *unreadable);

#pragma GCC visibility pop

#endif
