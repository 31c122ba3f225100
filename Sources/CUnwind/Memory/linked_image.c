// Finds an image's program headers in memory.

#define _GNU_SOURCE
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "Memory/guarded_memory.h"
#include "Memory/modules.h"

// Reads program headers. False: they are not this image's, because the dynamic section is elsewhere.
static bool read_segments_at(cunwind_linked_image *image, uint64_t address, uint64_t count) {
  if (address == 0 || count > CUNWIND_MAX_SEGMENTS ||
      !cunwind_guarded_read_all(address, image->segments, count * sizeof(ElfW(Phdr))))
    return false;
  image->segment_count = (uint16_t)count;
  for (uint64_t index = 0; index < count; index++) {
    const ElfW(Phdr) *segment = &image->segments[index];
    if (segment->p_type == PT_DYNAMIC) return image->base + segment->p_vaddr == image->dynamic;
  }
  return false;
}

static bool read_header(uint64_t address, ElfW(Ehdr) * header) {
  return cunwind_guarded_read_all(address, header, sizeof *header) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_phentsize == sizeof(ElfW(Phdr));
}

// A file's offset 0 need not be at the base (-Ttext-segment), and its program headers need not be behind the header
// (patchelf): what is mapped says where both are. In each place of a file that is mapped twice the headers are the same.
static bool read_mapped_segments(cunwind_linked_image *image, cunwind_mappings *mappings) {
  const cunwind_mapping *own = cunwind_mapping_at(mappings, image->dynamic);
  if (!own) {
    // It was loaded a moment ago.
    cunwind_mappings_read(mappings);
    own = cunwind_mapping_at(mappings, image->dynamic);
  }
  if (!own || own->file == 0) return false;
  const cunwind_mapping *end = mappings->list + mappings->count;
  for (const cunwind_mapping *first = mappings->list; first < end; first++) {
    ElfW(Ehdr) header;
    if (first->file != own->file || first->offset != 0 || !read_header(first->low, &header)) continue;
    for (const cunwind_mapping *piece = mappings->list; piece < end; piece++) {
      uint64_t place = header.e_phoff - piece->offset;
      if (piece->file != own->file || header.e_phoff < piece->offset || place >= piece->high - piece->low) continue;
      if (read_segments_at(image, piece->low + place, header.e_phnum)) return true;
    }
  }
  return false;
}

// The kernel gives the address of the executable's program headers (getauxval(3)); a library's are nearly always behind
// the header at its base.
bool cunwind_read_segments(cunwind_linked_image *image, cunwind_mappings *mappings) {
  ElfW(Ehdr) header;
  if (image->is_executable && read_segments_at(image, getauxval(AT_PHDR), getauxval(AT_PHNUM))) return true;
  if (read_header(image->base, &header) && read_segments_at(image, image->base + header.e_phoff, header.e_phnum))
    return true;
  return read_mapped_segments(image, mappings);
}
