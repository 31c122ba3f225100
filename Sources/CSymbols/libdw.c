#define _GNU_SOURCE
#include "libdw.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>

#include "CLinux.h"
#include "CSymbols.h"

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

static csymbols_libdw library;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// dlsym(3) finds libelf's functions through the handle's dependencies. Never closed: libdw keeps thread-specific keys.
static void load(void) {
  if (!csymbols_has_dynamic_loader()) return;
  void *handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
#define FIND(name)                                               \
  library.name = (__typeof__(library.name))dlsym(handle, #name); \
  if (!library.name) return;
  CSYMBOLS_LIBDW_FUNCTIONS(FIND)
#undef FIND
  is_loaded = library.elf_version(EV_CURRENT) != EV_NONE;
}

const csymbols_libdw *csymbols_libdw_get(void) {
  pthread_once(&once, load);
  return is_loaded ? &library : NULL;
}

bool csymbols_is_available(void) { return csymbols_libdw_get() != NULL; }

bool csymbols_has_room(uint64_t bytes) { return clinux_has_room((size_t)bytes + CSYMBOLS_LEAST_ROOM); }
