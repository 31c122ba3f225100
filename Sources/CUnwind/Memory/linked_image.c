#define _GNU_SOURCE
#include "Memory/linked_image.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "Memory/guarded_memory.h"
#include "Memory/mappings.h"

/// The most mappings of one file that are looked at, for an image whose header is not at its base. Linkers make 4 to 6.
#define MAX_PIECES 32u

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

// The mappings of an image's file. An image may be mapped more than once: its headers are the same in each place.
typedef struct file_pieces {
  uint64_t address;  ///< An address in the file's image.
  uint64_t file;
  unsigned count;
  cunwind_mapping list[MAX_PIECES];
} file_pieces;

static bool find_file(const cunwind_mapping *mapping, void *context) {
  file_pieces *pieces = context;
  if (mapping->low <= pieces->address && pieces->address < mapping->high) pieces->file = mapping->file;
  return mapping->low <= pieces->address;
}

static bool add_piece_of_file(const cunwind_mapping *mapping, void *context) {
  file_pieces *pieces = context;
  if (mapping->file == pieces->file && pieces->count < MAX_PIECES) pieces->list[pieces->count++] = *mapping;
  return true;
}

// A file's offset 0 need not be at the base (-Ttext-segment), and its program headers need not be behind the header
// (patchelf): what is mapped says where both are.
static bool read_mapped_segments(cunwind_linked_image *image) {
  file_pieces pieces = {.address = image->dynamic};
  cunwind_visit_mappings(find_file, &pieces);
  if (pieces.file == 0) return false;
  cunwind_visit_mappings(add_piece_of_file, &pieces);
  for (unsigned index = 0; index < pieces.count; index++) {
    ElfW(Ehdr) header;
    if (pieces.list[index].offset != 0 || !read_header(pieces.list[index].low, &header)) continue;
    for (unsigned other = 0; other < pieces.count; other++) {
      const cunwind_mapping *piece = &pieces.list[other];
      if (header.e_phoff < piece->offset || header.e_phoff - piece->offset >= piece->high - piece->low) continue;
      if (read_segments_at(image, piece->low + (header.e_phoff - piece->offset), header.e_phnum)) return true;
    }
  }
  return false;
}

// The kernel gives the address of the executable's program headers (getauxval(3)); a library's are nearly always behind
// the header at its base.
bool cunwind_read_segments(cunwind_linked_image *image) {
  ElfW(Ehdr) header;
  if (image->is_executable && read_segments_at(image, getauxval(AT_PHDR), getauxval(AT_PHNUM))) return true;
  if (read_header(image->base, &header) && read_segments_at(image, image->base + header.e_phoff, header.e_phnum))
    return true;
  return read_mapped_segments(image);
}
