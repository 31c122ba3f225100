// Files that have libunwind's name, and are something else; and processes that have its locks.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "CUnwindTestSupport.h"
#include "Support/bounded.h"
#include "Unwinding/unwind.h"

bool cunwind_test_load_unwinder(const char *path, char *text, size_t size) {
  char reason[CUNWIND_UNWINDER_REASON_BYTES] = "";
  cunwind_library *library = cunwind_library_create(path, reason);
  snprintf(text, size, "%s", library ? library->name : reason);
  if (!library) return false;
  cunwind_library_flush(library);
  cunwind_library_destroy(library);
  return true;
}

bool cunwind_test_file_of(const char *library, const char *symbol, char *path, size_t size) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found = handle ? dlsym(handle, symbol) : NULL;
  Dl_info information;
  if (!found || dladdr(found, &information) == 0) return false;
  snprintf(path, size, "%s", information.dli_fname);
  return true;
}

bool cunwind_test_child_leaves_libunwind_alone(void) {
  cunwind_engine *engine = cunwind_test_engine(27);
  pid_t child = fork();
  if (child == 0) {
    cunwind_engine *own = cunwind_test_engine(27);
    _exit(own && strcmp(cunwind_engine_unwinder(own).name, "built-in") == 0 ? 0 : 1);
  }
  int status = -1;
  bool is_over = engine && child > 0 && cunwind_test_await_child(child, &status) == 0;
  cunwind_engine_destroy(engine);
  return is_over && status == 0;
}
