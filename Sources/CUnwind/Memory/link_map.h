// The dynamic linker's list of images, read from outside as a debugger does: without its locks.

#ifndef CUNWIND_LINK_MAP_H
#define CUNWIND_LINK_MAP_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Program headers that are read at most; linkers write 8 to 14.
#define CUNWIND_MAX_SEGMENTS 64u
/// Images that are walked over at most: an end for a list that another thread damages while it is read.
#define CUNWIND_MAX_LINKED_IMAGES 16384u

/// An image as the linker lists it.
typedef struct cunwind_linked_image {
  uint64_t entry;      ///< Where the linker's entry is: a `struct link_map`.
  uint64_t base;       ///< What its addresses are relative to (l_addr).
  uint64_t name;       ///< Where its path is (l_name): read it with `cunwind_guarded_read`.
  bool is_executable;  ///< The first one. Its path is empty.
  uint16_t segment_count;
  ElfW(Phdr) segments[CUNWIND_MAX_SEGMENTS];
} cunwind_linked_image;

#pragma GCC visibility push(hidden)

/// Calls `visit` for each image whose program headers can be read, in the linker's order, and counts the others in
/// `unreadable`. False when the list changed under the walk so that its links did not fit together: not every image was
/// visited then. Takes no lock and cannot fault. Async-signal-safe: yes, if `visit` is.
bool cunwind_link_map_walk(void (*visit)(const cunwind_linked_image *image, void *context), void *context,
                           size_t *unreadable);

#pragma GCC visibility pop

#endif
