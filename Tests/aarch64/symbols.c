// Names and lines of this program's own functions, read from its DWARF with libdw.

#define _GNU_SOURCE
#include <CSymbols.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checks.h"

/// For csymbols_locate().
#define NO_DEADLINE UINT64_MAX

static uint64_t address_of_call;
static int line_of_call;

__attribute__((noinline)) static void note_caller(void) {
  address_of_call = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
}

__attribute__((always_inline)) static inline void inlined_function(void) {
  line_of_call = __LINE__ + 1;
  note_caller();
  __asm__ volatile("");  // Not a tail call.
}

__attribute__((noinline)) static void function_with_a_line(void) {
  inlined_function();
  __asm__ volatile("");
}

// Fills the debug sections of the mapped file. Returns how many there are.
static size_t debug_sections(const uint8_t *bytes, csymbols_section sections[CSYMBOLS_MAX_SECTIONS]) {
  const ElfW(Ehdr) *header = (const void *)bytes;
  const ElfW(Shdr) *list = (const void *)(bytes + header->e_shoff);
  const char *names = (const char *)bytes + list[header->e_shstrndx].sh_offset;
  size_t count = 0;
  for (int index = 0; index < header->e_shnum && count < CSYMBOLS_MAX_SECTIONS; index++) {
    const char *name = names + list[index].sh_name;
    if (strncmp(name, ".debug_", 7) != 0) continue;
    sections[count++] = (csymbols_section){
        .name = name,
        .offset = list[index].sh_offset,
        .size = list[index].sh_size,
        .is_compressed = (list[index].sh_flags & SHF_COMPRESSED) != 0,
    };
  }
  return count;
}

static int take_base(struct dl_phdr_info *info, size_t size, void *base) {
  (void)size;
  *(uint64_t *)base = info->dlpi_addr;
  return 1;  // The executable is the first one.
}

void check_symbols(void) {
  csymbols_section sections[CSYMBOLS_MAX_SECTIONS];
  static csymbols_location locations[CSYMBOLS_MAX_LOCATIONS];
  csymbols_status status = CSYMBOLS_UNREADABLE;
  struct stat size;
  size_t count = 0, found = 0;
  uint64_t base = 0;
  check(csymbols_is_available(), "libdw is loaded", "%s", "libdw.so.1");
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &size) != 0) return check(false, "the program is opened", "no file");
  const uint8_t *bytes = mmap(NULL, (size_t)size.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) return check(false, "the program is mapped", "no memory");
  count = debug_sections(bytes, sections);
  csymbols_image *image =
      csymbols_open(file, ((const ElfW(Ehdr) *)(const void *)bytes)->e_machine, sections, count, 64 << 20, &status);
  function_with_a_line();
  dl_iterate_phdr(take_base, &base);
  uint64_t address = address_of_call - base;
  if (image) status = csymbols_locate(image, address, NO_DEADLINE, locations, &found);
  const char *name = found > 0 && locations[0].function ? locations[0].function : "?";
  const char *caller = found > 1 && locations[1].function ? locations[1].function : "?";
  check(image && status == CSYMBOLS_OK && found == 2 && strcmp(name, "inlined_function") == 0 &&
            strcmp(caller, "function_with_a_line") == 0 && locations[0].is_inlined,
        "an inlined function and its caller are named", "status %d, %zu sections, %s in %s", status, count, name,
        caller);
  check(found > 0 && locations[0].line == (uint32_t)line_of_call && locations[0].file &&
            strstr(locations[0].file, "symbols.c"),
        "the line is right", "%s:%u, expected %d", found > 0 && locations[0].file ? locations[0].file : "?",
        found > 0 ? locations[0].line : 0, line_of_call);
  csymbols_close(image);
  munmap((void *)(uintptr_t)bytes, (size_t)size.st_size);
  close(file);
}
