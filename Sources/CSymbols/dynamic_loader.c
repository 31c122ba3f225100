#define _GNU_SOURCE
#include "dynamic_loader.h"

#include <link.h>
#include <stddef.h>

// dl_iterate_phdr(3) visits the executable first, so the first visit is the last.
static int visit_executable(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  bool *has_interpreter = argument;
  for (size_t index = 0; index < info->dlpi_phnum; index++) {
    if (info->dlpi_phdr[index].p_type == PT_INTERP) *has_interpreter = true;
  }
  return 1;
}

bool csymbols_has_dynamic_loader(void) {
  bool has_interpreter = false;
  dl_iterate_phdr(visit_executable, &has_interpreter);
  return has_interpreter;
}
