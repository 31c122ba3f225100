// Copies debug sections into an ELF file in memory that has nothing else.
//
// libdw would rather map the file, and then a file that is truncated while it is read (a package update that writes in
// place, a build) raises SIGBUS in the app. Copies cannot; they cost about 0.5 ms a megabyte (14 MB of a 53 MB debug build in
// 6 to 8 ms).

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image.h"

/// Zero bytes after every section: text and tables that lack their end meet it there, and not the next section.
#define PADDING_BYTES 64u
#define ALIGNMENT 16u
/// The null section, and the section names' own.
#define EXTRA_SECTIONS 2u
#define MAX_NAME_BYTES 64u
#define HUGE_PAGE_BYTES (2u * 1024u * 1024u)
/// Below malloc(3)'s own limit for a mapping (M_MMAP_THRESHOLD, 128 KiB), which grows when such a mapping is freed.
#define MAX_HEAP_BYTES (96u * 1024u)

static uint64_t aligned(uint64_t value) { return (value + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1); }

static csymbols_status copy_section(int descriptor, const csymbols_section *section, char *to) {
  uint64_t done = 0;
  while (done < section->size) {
    ssize_t got = pread(descriptor, to + done, (size_t)(section->size - done), (off_t)(section->offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return CSYMBOLS_UNREADABLE;
    done += (uint64_t)got;
  }
  return CSYMBOLS_OK;
}

// What libdw will allocate to decompress the section. Looked at here, because libdw would believe any number.
static csymbols_status add_unpacked(csymbols_copy *copy, const csymbols_section *section, const char *bytes) {
  if (!section->is_compressed) return CSYMBOLS_OK;
  Elf64_Chdr header;
  if (section->size < sizeof header) return CSYMBOLS_DAMAGED;
  memcpy(&header, bytes, sizeof header);
  if (header.ch_size > INT64_MAX) return CSYMBOLS_DAMAGED;
  copy->unpacked_bytes += header.ch_size;
  return CSYMBOLS_OK;
}

static uint64_t file_bytes(const csymbols_section *sections, size_t count, uint64_t maximum_bytes) {
  uint64_t total = sizeof(Elf64_Ehdr);
  for (size_t index = 0; index < count; index++) {
    if (sections[index].size > maximum_bytes) return UINT64_MAX;
    total = aligned(total + sections[index].size + PADDING_BYTES);
  }
  // The names and the headers.
  return total + aligned((count + EXTRA_SECTIONS) * MAX_NAME_BYTES) + (count + EXTRA_SECTIONS) * sizeof(Elf64_Shdr);
}

// Mapped with room to begin on a large page: copying 20 MB costs 5,000 page faults otherwise. Small copies use the heap,
// because page faults would take a tenth of the whole symbolication of a small executable.
static bool map_copy(csymbols_copy *copy, uint64_t length) {
  if (length <= MAX_HEAP_BYTES) {
    copy->bytes = calloc(1, length);
    return copy->bytes != NULL;
  }
  void *memory = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  copy->mapped_length = (size_t)length;
  if (length >= HUGE_PAGE_BYTES) madvise(memory, copy->mapped_length, MADV_HUGEPAGE);
  copy->bytes = memory;
  return true;
}

static void write_header(csymbols_copy *copy, uint16_t machine, uint64_t headers, size_t count) {
  Elf64_Ehdr header = {
      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
      .e_type = ET_DYN,
      .e_machine = machine,
      .e_version = EV_CURRENT,
      .e_shoff = headers,
      .e_ehsize = sizeof header,
      .e_shentsize = sizeof(Elf64_Shdr),
      .e_shnum = (uint16_t)(count + EXTRA_SECTIONS),
      .e_shstrndx = (uint16_t)(count + 1),
  };
  memcpy(copy->bytes, &header, sizeof header);
}

csymbols_status csymbols_copy_sections(csymbols_copy *copy, int descriptor, uint16_t machine,
                                       const csymbols_section *sections, size_t count, uint64_t maximum_bytes) {
  if (count > CSYMBOLS_MAX_SECTIONS) return CSYMBOLS_TOO_LARGE;
  uint64_t total = file_bytes(sections, count, maximum_bytes);
  if (total > maximum_bytes) return CSYMBOLS_TOO_LARGE;
  if (!csymbols_has_room(total) || !map_copy(copy, total)) return CSYMBOLS_NO_MEMORY;

  Elf64_Shdr headers[CSYMBOLS_MAX_SECTIONS + EXTRA_SECTIONS] = {0};
  char names[(CSYMBOLS_MAX_SECTIONS + EXTRA_SECTIONS) * MAX_NAME_BYTES] = {0};
  size_t name_bytes = 1;
  uint64_t at = aligned(sizeof(Elf64_Ehdr));
  for (size_t index = 0; index < count; index++) {
    const csymbols_section *section = &sections[index];
    size_t length = strnlen(section->name, MAX_NAME_BYTES);
    if (length == MAX_NAME_BYTES) return CSYMBOLS_DAMAGED;
    csymbols_status status = copy_section(descriptor, section, copy->bytes + at);
    if (status == CSYMBOLS_OK) status = add_unpacked(copy, section, copy->bytes + at);
    if (status != CSYMBOLS_OK) return status;
    if (strcmp(section->name, ".debug_line") == 0) copy->line_section = index + 1;
    headers[index + 1] = (Elf64_Shdr){.sh_name = (uint32_t)name_bytes,
                                      .sh_type = SHT_PROGBITS,
                                      .sh_offset = at,
                                      .sh_size = section->size,
                                      .sh_addralign = 1,
                                      .sh_flags = section->is_compressed ? SHF_COMPRESSED : 0};
    memcpy(names + name_bytes, section->name, length + 1);
    name_bytes += length + 1;
    at = aligned(at + section->size + PADDING_BYTES);
  }
  headers[count + 1] = (Elf64_Shdr){.sh_name = (uint32_t)name_bytes,
                                    .sh_type = SHT_STRTAB,
                                    .sh_offset = at,
                                    .sh_size = name_bytes + sizeof ".shstrtab",
                                    .sh_addralign = 1};
  memcpy(names + name_bytes, ".shstrtab", sizeof ".shstrtab");
  memcpy(copy->bytes + at, names, (count + EXTRA_SECTIONS) * MAX_NAME_BYTES);
  at = aligned(at + (count + EXTRA_SECTIONS) * MAX_NAME_BYTES);
  memcpy(copy->bytes + at, headers, (count + EXTRA_SECTIONS) * sizeof *headers);
  copy->length = (size_t)(at + (count + EXTRA_SECTIONS) * sizeof *headers);
  write_header(copy, machine, at, count);
  return copy->length + copy->unpacked_bytes > maximum_bytes ? CSYMBOLS_TOO_LARGE : CSYMBOLS_OK;
}

void csymbols_copy_free(csymbols_copy *copy) {
  if (copy->mapped_length > 0) munmap(copy->bytes, copy->mapped_length);
  else free(copy->bytes);
  *copy = (csymbols_copy){0};
}
