#include "image.h"

#include <setjmp.h>
#include <stdlib.h>

/// Where a call leads when libdw runs out of memory; NULL while none is under way.
static _Thread_local jmp_buf *escape;

// libdw's own handler ends the process. A handler must not return (libdw.h), and libdw holds no lock when it calls one.
static __attribute__((noreturn)) void leave_libdw(void) {
  if (!escape) abort();  // Never: each call of libdw's that allocates runs with an escape.
  longjmp(*escape, 1);
}

static csymbols_status open_image(csymbols_image *image, int descriptor, uint16_t machine,
                                  const csymbols_section *sections, size_t section_count) {
  csymbols_status status =
      csymbols_copy_sections(&image->copy, descriptor, machine, sections, section_count, image->maximum_bytes);
  if (status != CSYMBOLS_OK) return status;
  image->elf = image->libdw->elf_memory(image->copy.bytes, image->copy.length);
  if (!image->elf) return CSYMBOLS_NO_MEMORY;
  if (!csymbols_has_room(image->copy.unpacked_bytes)) return CSYMBOLS_NO_MEMORY;
  image->dwarf = image->libdw->dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
  if (image->dwarf) image->libdw->dwarf_new_oom_handler(image->dwarf, leave_libdw);
  if (image->copy.unpacked_bytes == 0) return image->dwarf ? CSYMBOLS_OK : CSYMBOLS_DAMAGED;
  // A section that libdw cannot decompress is none to it, and it says no more than that there are no units.
  Dwarf_Off next;
  size_t header_size;
  bool has_units = image->dwarf && image->libdw->dwarf_next_unit(image->dwarf, 0, &next, &header_size, NULL, NULL, NULL,
                                                                 NULL, NULL, NULL) == 0;
  return has_units ? CSYMBOLS_OK : CSYMBOLS_COMPRESSION;
}

csymbols_image *csymbols_open(int descriptor, uint16_t machine, const csymbols_section *sections, size_t section_count,
                              uint64_t maximum_bytes, csymbols_status *status) {
  *status = CSYMBOLS_NO_MEMORY;
  // Loading the library takes memory, too.
  if (!csymbols_has_room(0)) return NULL;
  const csymbols_libdw *libdw = csymbols_libdw_get();
  csymbols_image *image = libdw ? calloc(1, sizeof *image) : NULL;
  if (!libdw) *status = CSYMBOLS_NO_LIBRARY;
  if (!image) return NULL;
  image->libdw = libdw;
  image->maximum_bytes = maximum_bytes;
  jmp_buf here;
  escape = &here;
  // Nothing that changes after setjmp(3) is read after longjmp(3).
  *status = setjmp(here) == 0 ? open_image(image, descriptor, machine, sections, section_count) : CSYMBOLS_NO_MEMORY;
  escape = NULL;
  if (*status == CSYMBOLS_OK) return image;
  csymbols_close(image);
  return NULL;
}

csymbols_status csymbols_locate(csymbols_image *image, uint64_t address, uint64_t deadline,
                                csymbols_location *locations, size_t *count) {
  *count = 0;
  if (image->is_out_of_memory || !csymbols_has_room(0)) return CSYMBOLS_NO_MEMORY;
  jmp_buf here;
  escape = &here;
  csymbols_status status;
  if (setjmp(here) == 0) {
    status = csymbols_locate_guarded(image, address, deadline, locations, count);
  } else {
    image->is_out_of_memory = true;
    status = CSYMBOLS_NO_MEMORY;
    *count = 0;
  }
  escape = NULL;
  return status;
}

void csymbols_close(csymbols_image *image) {
  if (!image) return;
  for (size_t index = 0; index < image->unit_count; index++)
    csymbols_drop_ranges(image, &image->units[index].functions);
  free(image->units);
  csymbols_drop_ranges(image, &image->unit_ranges);
  if (image->dwarf) image->libdw->dwarf_end(image->dwarf);
  if (image->elf) image->libdw->elf_end(image->elf);
  csymbols_copy_free(&image->copy);
  free(image);
}
