#define _GNU_SOURCE
#include "libdw.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "CSymbols.h"
#include "dynamic_loader.h"

static csymbols_libdw library;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// libelf's functions are found as well: dlsym(3) looks through the handle's own dependencies. Never closed, because
// libdw keeps keys of thread-specific data.
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
