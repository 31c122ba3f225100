// libunwind is opened with RTLD_LOCAL, and only as its remote half. The symbols of the local half (libunwind.so), and
// those of the remote half if they were global, could take `_Unwind_RaiseException` and with it every C++ exception of
// the program away from libgcc_s.
//
// RTLD_NODELETE: libunwind keeps two descriptors open from its first address space on, which unloading would leak.

#define _GNU_SOURCE
#include "unwind_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define LIBRARY_NAME "libunwind-x86_64.so.8"
#else
#define LIBRARY_NAME "libunwind-aarch64.so.8"
#endif

#define TEXT(name) #name
#define EXPANDED_TEXT(name) TEXT(name)
// The name that libunwind's macro `name` stands for, such as _Ux86_64_step.
#define SYMBOL(name) EXPANDED_TEXT(name)

static bool find(void *handle, const char *name, void *to) {
  void *found = dlsym(handle, name);
  memcpy(to, &found, sizeof found);  // ISO C has no conversion from an object's to a function's pointer.
  return found != NULL;
}

static bool find_all(cunwind_library *library, void *handle) {
  return find(handle, SYMBOL(unw_create_addr_space), &library->create_addr_space) &&
         find(handle, SYMBOL(unw_destroy_addr_space), &library->destroy_addr_space) &&
         find(handle, SYMBOL(unw_set_caching_policy), &library->set_caching_policy) &&
         find(handle, SYMBOL(unw_set_cache_size), &library->set_cache_size) &&
         find(handle, SYMBOL(unw_flush_cache), &library->flush_cache) &&
         find(handle, SYMBOL(unw_init_remote), &library->init_remote) &&
         find(handle, SYMBOL(unw_step), &library->step) && find(handle, SYMBOL(unw_get_reg), &library->get_reg) &&
         find(handle, SYMBOL(unw_get_save_loc), &library->get_save_loc) &&
         find(handle, SYMBOL(UNW_OBJ(dwarf_search_unwind_table)), &library->search_table);
}

static bool try_path(cunwind_library *library, const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle && find_all(library, handle)) {
    library->is_loaded = true;
    library->error[0] = 0;
    return true;
  }
  // The first failure is the one that matters: it is about the path that the caller chose.
  const char *error = dlerror();
  if (library->error[0] == 0) {
    snprintf(library->error, sizeof library->error, "%s", error ? error : "cannot be loaded");
  }
  if (handle) dlclose(handle);
  return false;
}

static bool try_beside_executable(cunwind_library *library) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = 0;
  char *name = strrchr(path, '/');
  if (!name || (size_t)(name + 1 - path) + sizeof LIBRARY_NAME > sizeof path) return false;
  strcpy(name + 1, LIBRARY_NAME);
  return access(path, F_OK) == 0 && try_path(library, path);
}

bool cunwind_library_load(cunwind_library *library, const char *path) {
  memset(library, 0, sizeof *library);
  if (path && path[0] == 0) {
    snprintf(library->error, sizeof library->error, "switched off");
    return false;
  }
  if ((path && try_path(library, path)) || try_beside_executable(library) || try_path(library, LIBRARY_NAME)) {
    return true;
  }
  char error[CUNWIND_LIBRARY_ERROR_BYTES];
  memcpy(error, library->error, sizeof error);
  memset(library, 0, sizeof *library);
  memcpy(library->error, error, sizeof error);
  return false;
}
