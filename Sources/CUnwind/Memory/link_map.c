// dl_iterate_phdr(3) takes the linker's lock, which the stalled thread may hold: in a callback of that same function,
// or in a dlopen that does not end. So this code reads the list as a debugger does (<link.h>, "rendezvous structure"):
// from the head `_r_debug.r_map` along the links. Every read is guarded, because another thread may free an entry at
// any moment.

#define _GNU_SOURCE
#include "Memory/link_map.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "Memory/guarded_memory.h"

static bool read_exactly(uint64_t address, void *to, size_t length) {
  return cunwind_guarded_read(address, to, length) == length;
}

// The kernel gives the address of the executable's headers (getauxval(3)), whose first segment may not begin at its
// base.
static bool read_executable_segments(cunwind_linked_image *image) {
  uint64_t address = getauxval(AT_PHDR), count = getauxval(AT_PHNUM);
  if (address == 0 || count > CUNWIND_MAX_SEGMENTS) return false;
  image->segment_count = (uint16_t)count;
  return read_exactly(address, image->segments, count * sizeof(ElfW(Phdr)));
}

// A library's first segment contains its ELF header and has the address 0: all linkers do that.
static bool read_library_segments(cunwind_linked_image *image) {
  ElfW(Ehdr) header;
  if (!read_exactly(image->base, &header, sizeof header)) return false;
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return false;
  if (header.e_phnum > CUNWIND_MAX_SEGMENTS) return false;
  image->segment_count = header.e_phnum;
  return read_exactly(image->base + header.e_phoff, image->segments, header.e_phnum * sizeof(ElfW(Phdr)));
}

bool cunwind_link_map_walk(void (*visit)(const cunwind_linked_image *image, void *context), void *context,
                           size_t *unreadable) {
  uint64_t previous = 0, at = (uint64_t)(uintptr_t)_r_debug.r_map;
  *unreadable = 0;
  for (unsigned index = 0; at != 0; index++) {
    struct link_map entry;
    if (index == CUNWIND_MAX_LINKED_IMAGES || !read_exactly(at, &entry, sizeof entry)) return false;
    // An entry that was freed or unlinked meanwhile does not point back to the previous one.
    if ((uint64_t)(uintptr_t)entry.l_prev != previous) return false;
    cunwind_linked_image image = {
        .entry = at, .base = entry.l_addr, .name = (uint64_t)(uintptr_t)entry.l_name, .is_executable = index == 0};
    if (image.is_executable ? read_executable_segments(&image) : read_library_segments(&image)) visit(&image, context);
    else ++*unreadable;
    previous = at;
    at = (uint64_t)(uintptr_t)entry.l_next;
  }
  return true;
}
