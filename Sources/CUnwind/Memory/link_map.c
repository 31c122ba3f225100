// dl_iterate_phdr(3) takes the linker's lock, which a thread may hold for as long as it likes: in a callback of that
// same function, or stuck in the middle of a dlopen. Such a thread is just the one to be captured. So the list is read
// the way a debugger reads it (<link.h>, "rendezvous structure"): the head is `_r_debug.r_map`, the rest are links, and
// every read is guarded, because another thread may free an entry at any moment.

#define _GNU_SOURCE
#include "Memory/link_map.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "Memory/guarded_memory.h"

static bool read_exactly(uint64_t address, void *to, size_t length) {
  return cunwind_guarded_read(address, to, length) == length;
}

// The kernel says where the executable's are (getauxval(3)): its first segment need not begin at its base.
static bool read_executable_segments(cunwind_linked_image *image) {
  uint64_t address = getauxval(AT_PHDR), count = getauxval(AT_PHNUM);
  if (address == 0 || count > CUNWIND_MAX_SEGMENTS) return false;
  image->segment_count = (uint16_t)count;
  return read_exactly(address, image->segments, count * sizeof(ElfW(Phdr)));
}

// A library's first segment holds its ELF header and has the address 0: every linker lays it out so.
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
    // An entry that was freed, or unlinked after its neighbour was read, does not point back to where we came from.
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
